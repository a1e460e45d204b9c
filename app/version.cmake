# SPDX-License-Identifier: Apache-2.0
# Run at every build: writes OUT from IN with the version and the commit, and leaves it alone when nothing changed.
set(KVATLAS_COMMIT "unknown")
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short HEAD OUTPUT_VARIABLE commit RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(KVATLAS_COMMIT ${commit})
    execute_process(COMMAND ${GIT} -C ${SOURCE} diff --quiet HEAD -- RESULT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND KVATLAS_COMMIT "+")
    endif()
  endif()
endif()
configure_file(${IN} ${OUT} @ONLY)

// SPDX-License-Identifier: Apache-2.0
// The requests of the lane as a list, and the text of the selected one as it streams, up to the cursor. Cancels a
// request where the source takes commands. GUI thread.
#pragma once

#include "ui/panels/requests_model.h"
#include "ui/panels/surface.h"
#include "ui/workbench.h"

#include <QWidget>

#include <array>
#include <optional>

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTableView;

namespace kvatlas::ui {

class RequestsPanel : public Surface {
    Q_OBJECT
public:
    explicit RequestsPanel(const Workbench& bench, QWidget* parent = nullptr);
    RequestsModel& model() { return *m_model; }
    QString shownText() const;
    void awaitNext();                                // selects the next request that arrives
    std::array<QWidget*, 2> readOnlyWidgets() const; // the list and the text

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void restyle();
    void fitRows(); // gives the list two fifths of the height, in whole rows
    void refreshRows();
    void refreshText();
    void takeSelection();
    RequestId shownRequest() const;
    RequestId newestRequest() const;

    const Workbench m_bench;
    RequestsModel* m_model;
    QTableView* m_table;
    QLabel *m_notRecorded, *m_head;
    QPlainTextEdit* m_text;
    QPushButton* m_cancel;
    std::optional<RequestId> m_awaitedAfter;
    RequestId m_textOf;
    bool m_readsEnd = true;                           // of the text: nobody scrolled up
    std::pair<std::size_t, std::size_t> m_textTokens; // of what is shown: prompt, output
    QString m_prompt, m_output;
};

} // namespace kvatlas::ui

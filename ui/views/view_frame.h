// SPDX-License-Identifier: Apache-2.0
// The frame of a view: header (title, subtitle, controls, menu), body, legend with live counts. Also its Picture, with
// "Export..." in its menu. GUI thread.
#pragma once

#include "ui/views/picture.h"
#include "ui/workbench.h"

#include <QWidget>

class QHBoxLayout;
class QLabel;
class QMenu;
class QToolButton;
class QVBoxLayout;

namespace kvatlas::ui {

class LegendBar : public QWidget {
    Q_OBJECT
public:
    LegendBar(const Workbench& bench, QWidget* parent);
    void setEntries(std::vector<LegendEntry> entries);
    QSize sizeHint() const override { return {200, 24}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    const Workbench m_bench;
    std::vector<LegendEntry> m_entries;
};

class ViewFrame : public QWidget, public Picture {
    Q_OBJECT
public:
    ViewFrame(const Workbench& bench, std::size_t laneIndex, const QString& title, const QString& key,
              QWidget* parent = nullptr);

    const QString& key() const { return m_key; } // "memory-map"
    QString pictureTitle() const override { return m_title; }
    QString pictureSubtitle() const override { return m_subtitle; }
    virtual QWidget* focusTarget() = 0;

signals:
    void exportRequested(const QString& key);

protected:
    Lane* lane() const { return m_bench.lanes.lane(m_laneIndex); }
    const Theme& theme() const { return m_bench.theme(); }
    void setBody(QWidget* body);
    void setSubtitle(const QString& text);
    QToolButton* addControl(const QString& label, const QString& tip); // a flat button with a chevron and a menu
    void setControlText(QToolButton* button, const QString& label, const QString& value);
    QMenu* menu() const { return m_menu; }
    void showLegend(std::vector<LegendEntry> entries);
    void paintEvent(QPaintEvent* event) override;

    const Workbench m_bench;

private:
    void restyle();
    std::size_t m_laneIndex;
    QString m_title, m_key, m_subtitle;
    QVBoxLayout* m_column;
    QHBoxLayout* m_header;
    QWidget* m_headerBar;
    QLabel *m_titleLabel, *m_subtitleLabel;
    QToolButton* m_more;
    QMenu* m_menu;
    LegendBar* m_legend;
    std::vector<QToolButton*> m_controls;
};

} // namespace kvatlas::ui

package dashboard

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// press is what a key does.
func (m *Model) press(msg tea.KeyPressMsg) tea.Cmd {
	if m.typing {
		return m.typed(msg)
	}
	switch {
	case key.Matches(msg, keys.quit):
		m.quitting = true
		return tea.Quit
	case key.Matches(msg, keys.suspend):
		return tea.Suspend
	case key.Matches(msg, keys.pause):
		m.paused = !m.paused
		if !m.paused && m.last != nil {
			m.show()
		}
	case key.Matches(msg, keys.help):
		m.toggleHelp()
	case key.Matches(msg, keys.close):
		m.leave()
	case key.Matches(msg, keys.tab):
		m.goTo((m.tab() + 1) % tabCount)
	case key.Matches(msg, keys.back):
		m.goTo((m.tab() + tabCount - 1) % tabCount)
	case key.Matches(msg, keys.jump):
		m.goTo(view(msg.Code - '1'))
	case key.Matches(msg, keys.filter):
		return m.startFilter()
	default:
		return m.pressMove(msg)
	}
	return nil
}

// pressMove is what a key does that moves within a view.
func (m *Model) pressMove(msg tea.KeyPressMsg) tea.Cmd {
	page, far := max(1, m.bodyHeight()-2), 1<<30
	switch {
	case key.Matches(msg, keys.up):
		m.move(-1)
	case key.Matches(msg, keys.down):
		m.move(1)
	case key.Matches(msg, keys.pageUp):
		m.move(-page)
	case key.Matches(msg, keys.pageDown):
		m.move(page)
	case key.Matches(msg, keys.first):
		m.move(-far)
	case key.Matches(msg, keys.last):
		m.move(far)
	default:
		if t := m.table(); t != nil {
			return m.pressTable(t, msg)
		}
	}
	return nil
}

func (m *Model) pressTable(t *table, msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(msg, keys.sortLeft):
		t.sortBy(-1)
	case key.Matches(msg, keys.sortRight):
		t.sortBy(1)
	case key.Matches(msg, keys.turn):
		t.turned = !t.turned
	case key.Matches(msg, keys.open):
		if s := t.selected(); s != nil {
			m.under, m.view, m.scroll = m.view, viewDetail, 0
			m.of, m.detail, m.askedAt = s.sourceKey, nil, m.now.Add(-askEvery)
			return m.ask()
		}
	}
	m.fill()
	return nil
}

func (m *Model) move(n int) {
	if t := m.table(); t != nil {
		t.move(n)
		return
	}
	m.scroll += n
}

// tab is the tab that is shown, or lies under what is.
func (m *Model) tab() view {
	if m.view < tabCount {
		return m.view
	}
	return m.under
}

func (m *Model) goTo(v view) { m.view, m.under, m.scroll = v, v, 0 }

func (m *Model) toggleHelp() {
	if m.view == viewHelp {
		m.leave()
		return
	}
	m.under, m.view, m.scroll = m.tab(), viewHelp, 0
}

// leave goes back to what lies under, or drops the filter.
func (m *Model) leave() {
	if m.view >= tabCount {
		m.goTo(m.under)
		return
	}
	m.setFilter("")
}

// startFilter lets a filter be typed; where there is no list, in the list of sources.
func (m *Model) startFilter() tea.Cmd {
	if m.table() == nil {
		m.goTo(viewSources)
	}
	m.typing = true
	m.input.CursorEnd()
	return m.input.Focus()
}

// typed is what a key does while a filter is typed. The list follows each letter.
func (m *Model) typed(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "ctrl+c":
		m.quitting = true
		return tea.Quit
	case "enter":
		m.stopTyping()
		return nil
	case "esc":
		m.stopTyping()
		m.setFilter("")
		return nil
	case "up":
		m.move(-1)
		return nil
	case "down":
		m.move(1)
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.filter = parseFilter(m.input.Value())
	m.fill()
	return cmd
}

func (m *Model) stopTyping() {
	m.typing = false
	m.input.Blur()
}

func (m *Model) setFilter(text string) {
	m.input.SetValue(text)
	m.filter = parseFilter(text)
	m.fill()
}

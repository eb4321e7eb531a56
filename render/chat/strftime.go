package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/kvscout/kvscout/render/pyval"
)

// strftime is datetime.strftime of a naive time, with glibc and the C locale.
func strftime(t time.Time, format string) (pyval.Value, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := i < len(format) && format[i] == '-' // glibc: no padding
		if plain {
			i++
		}
		if i >= len(format) {
			return nil, unsupportedf("'%%' at the end of a time format")
		}
		text, ok := directive(t, format[i])
		if !ok {
			return nil, unsupportedf("'%%%c' in a time format", format[i])
		}
		if plain {
			if strings.IndexByte("dmHIMSjye", format[i]) < 0 {
				return nil, unsupportedf("'%%-%c' in a time format", format[i])
			}
			if text = strings.TrimLeft(text, "0 "); text == "" {
				text = "0"
			}
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func directive(t time.Time, c byte) (string, bool) {
	layouts := map[byte]string{
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'j': "002",
		'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'y': "06", 'D': "01/02/06", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04",
		'Y': "2006", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'r': "03:04:05 PM",
	}
	if layout, ok := layouts[c]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	switch c {
	case '%':
		return "%", true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case 'z', 'Z':
		return "", true // the time is naive
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'w':
		return fmt.Sprint(int(t.Weekday())), true
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1), true
	case 'G':
		return fmt.Sprintf("%04d", year), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	}
	return "", false
}

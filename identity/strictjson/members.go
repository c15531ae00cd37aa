package strictjson

import "encoding/json"

// Members returns the members of an object that Check let pass, as parts of raw; nil
// when raw is no object. The values are documents that Check lets pass.
func Members(raw []byte) map[string]json.RawMessage {
	s := scanner{raw: raw, maxDepth: quickDepth}
	s.blanks()
	if !s.take('{') {
		return nil
	}
	all := make(map[string]json.RawMessage, 8)
	for s.blanks(); !s.take('}'); s.blanks() {
		if len(all) > 0 && !s.take(',') {
			return slowMembers(raw)
		}
		s.blanks()
		from := s.at + 1
		if !s.text() || !s.plain(from, s.at-1) {
			return slowMembers(raw)
		}
		name := string(raw[from : s.at-1])
		if s.blanks(); !s.take(':') {
			return slowMembers(raw)
		}
		s.blanks()
		if from = s.at; !s.value() {
			return slowMembers(raw)
		}
		all[name] = raw[from:s.at:s.at]
	}
	return all
}

// slowMembers is Members by the decoder, for what the scanner does not read.
func slowMembers(raw []byte) (all map[string]json.RawMessage) {
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// String returns the text of a JSON string that Check let pass; false when raw is
// another value.
func String(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if s := (scanner{raw: raw}); s.text() && s.at == len(raw) && s.plain(1, s.at-1) {
		return string(raw[1 : s.at-1]), true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

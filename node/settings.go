package node

import (
	"cmp"
	"fmt"
	"reflect"
)

// A Setting is one of a Config, as its tags describe it.
type Setting struct {
	Name, Env, Default, Help string
	Value                    any
	Set                      bool // its value is not the default
}

// Settings are those of the configuration, in the order of the reference.
func (c Config) Settings() (all []Setting) {
	v := reflect.ValueOf(c)
	for _, f := range reflect.VisibleFields(v.Type()) {
		s := Setting{Name: cmp.Or(f.Tag.Get("name"), kebab(f.Name)), Env: f.Tag.Get("env"), Default: f.Tag.Get("default"), Help: f.Tag.Get("help")}
		if s.Help == "" {
			continue
		}
		field := v.FieldByIndex(f.Index)
		s.Value = field.Interface()
		switch text := fmt.Sprint(s.Value); field.Kind() {
		case reflect.Slice:
			s.Set = field.Len() > 0
		case reflect.String:
			s.Set = text != s.Default
		default:
			s.Set = text != cmp.Or(s.Default, fmt.Sprint(reflect.Zero(field.Type())))
		}
		all = append(all, s)
	}
	return all
}

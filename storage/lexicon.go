package storage

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon.txt
var lexicon string

// synonyms are the keys of words of the same meaning, by key.
var synonyms = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(lexicon) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var keys []string
		for _, w := range foldWords(line) {
			if k := keyOf(w); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		for i, k := range keys {
			for n, other := range keys {
				if n != i && !slices.Contains(all[k], other) {
					all[k] = append(all[k], other)
				}
			}
		}
	}
	return all
})

// idle are words of a question that say nothing about what is wanted, in English and Hindi. They count when there are no others.
var idle = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(`a an the of in on at to for with and or by from is are be am was i im my me we our us you your it its this that these those
		some something someone somebody any anything anyone who which what where how can could would should do does did want wants wanted need needs needed
		looking look find get buy give show please near nearby best good not no only as so if
		ka ki ke ko se mein me par aur ya hai hain kya koi liye wala wali wale chahiye mujhe mera meri mere
		का की के को से में पर और या है हैं क्या कोई लिए वाला वाली वाले चाहिए मुझे मेरा मेरी मेरे`) {
		all[foldWords(w)[0]] = true
	}
	return all
})

package storage

import "sync"

// Cities with more than one name in use. The first name is the one in the index;
// names are compared folded, so case and accents do not matter.
var cities = [][]string{
	{"Mumbai", "Bombay", "मुंबई", "मुम्बई", "बंबई"},
	{"Bengaluru", "Bangalore", "Bengalooru", "Bangaluru", "ಬೆಂಗಳೂರು", "बेंगलुरु", "बैंगलोर", "बंगलौर"},
	{"Chennai", "Madras", "சென்னை", "चेन्नई", "मद्रास"},
	{"Kolkata", "Calcutta", "কলকাতা", "कोलकाता", "कलकत्ता"},
	{"Delhi", "New Delhi", "Dilli", "दिल्ली", "नई दिल्ली", "دہلی"},
	{"Hyderabad", "హైదరాబాద్", "हैदराबाद"},
	{"Pune", "Poona", "पुणे", "पूना"},
	{"Ahmedabad", "Ahmadabad", "Amdavad", "અમદાવાદ", "अहमदाबाद"},
	{"Gurugram", "Gurgaon", "गुरुग्राम", "गुड़गांव"},
	{"Jaipur", "जयपुर"},
	{"Kochi", "Cochin", "കൊച്ചി", "कोच्चि"},
	{"Thiruvananthapuram", "Trivandrum", "തിരുവനന്തപുരം", "तिरुवनंतपुरम"},
	{"Kozhikode", "Calicut", "കോഴിക്കോട്"},
	{"Thrissur", "Trichur", "തൃശ്ശൂർ"},
	{"Kollam", "Quilon"},
	{"Alappuzha", "Alleppey"},
	{"Mysuru", "Mysore", "ಮೈಸೂರು", "मैसूर"},
	{"Mangaluru", "Mangalore", "ಮಂಗಳೂರು"},
	{"Hubballi", "Hubli"},
	{"Belagavi", "Belgaum"},
	{"Shivamogga", "Shimoga"},
	{"Puducherry", "Pondicherry", "புதுச்சேரி"},
	{"Tiruchirappalli", "Trichy", "Tiruchi", "Trichinopoly"},
	{"Thanjavur", "Tanjore"},
	{"Thoothukudi", "Tuticorin"},
	{"Udhagamandalam", "Ooty", "Ootacamund"},
	{"Varanasi", "Banaras", "Benares", "Kashi", "वाराणसी", "बनारस", "काशी"},
	{"Prayagraj", "Allahabad", "प्रयागराज", "इलाहाबाद"},
	{"Kanpur", "Cawnpore", "कानपुर"},
	{"Lucknow", "लखनऊ"},
	{"Vadodara", "Baroda", "વડોદરા", "वडोदरा"},
	{"Surat", "સુરત", "सूरत"},
	{"Visakhapatnam", "Vizag", "Vishakhapatnam", "విశాఖపట్నం"},
	{"Vijayawada", "Bezawada"},
	{"Guwahati", "Gauhati", "গুৱাহাটী"},
	{"Shimla", "Simla", "शिमला"},
	{"Panaji", "Panjim"},
	{"Indore", "इंदौर", "इन्दौर"},
	{"Bhopal", "भोपाल"},
	{"Nagpur", "नागपुर"},
	{"Patna", "पटना"},
	{"Chhatrapati Sambhajinagar", "Aurangabad", "औरंगाबाद"},
	{"Kathmandu", "काठमाडौँ", "काठमांडू"},
	{"Dhaka", "Dacca", "ঢাকা"},
	{"Yangon", "Rangoon"},
	{"Beijing", "Peking", "北京"},
	{"Guangzhou", "Canton", "广州"},
	{"Ho Chi Minh City", "Saigon", "Thành phố Hồ Chí Minh"},
	{"Kyiv", "Kiev", "Київ"},
	{"Munich", "München", "Muenchen"},
	{"Cologne", "Köln", "Koeln"},
	{"Vienna", "Wien"},
	{"Zurich", "Zürich", "Zuerich"},
	{"Geneva", "Genève", "Genf"},
	{"Rome", "Roma"},
	{"Milan", "Milano"},
	{"Florence", "Firenze"},
	{"Venice", "Venezia"},
	{"Lisbon", "Lisboa"},
	{"Prague", "Praha"},
	{"Warsaw", "Warszawa"},
	{"Copenhagen", "København", "Kobenhavn"},
	{"Brussels", "Bruxelles", "Brussel"},
	{"Athens", "Αθήνα", "Athina"},
	{"Istanbul", "Constantinople"},
	{"Moscow", "Москва", "Moskva"},
	{"New York", "New York City", "NYC"},
	{"San Francisco", "SF"},
	{"Los Angeles", "LA"},
	{"Mexico City", "Ciudad de México", "CDMX"},
}

var cityNames = sync.OnceValue(func() map[string]string { return namesOf(cities) })

// cityName is the indexed name of a city, folded.
func cityName(s string) string {
	name := foldName(s)
	if one, ok := cityNames()[name]; ok {
		return one
	}
	return name
}

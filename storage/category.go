package storage

import "sync"

// Categories with more than one name in use, of shops and of items. The first name is
// the one in the index; names are compared folded.
var categories = [][]string{
	{"Restaurant", "Restaurants", "Eatery", "Dhaba", "रेस्टोरेंट", "रेस्तरां", "भोजनालय", "ढाबा"},
	{"Food", "Meals", "Khana", "भोजन", "खाना"},
	{"Tiffin", "Tiffins", "Tiffin service", "Dabba", "टिफिन", "डब्बा"},
	{"Breakfast", "Nashta", "नाश्ता"},
	{"Sweets", "Sweet shop", "Mithai", "Confectionery", "मिठाई", "मिठाइयाँ"},
	{"Snacks", "Namkeen", "नमकीन"},
	{"Bakery", "Bakeries", "बेकरी"},
	{"Cafe", "Café", "Coffee shop", "कैफ़े"},
	{"Drinks", "Beverages", "पेय"},
	{"Tea", "Chai", "चाय"},
	{"Coffee", "कॉफ़ी", "काफी"},
	{"Grocery", "Groceries", "Kirana", "Kirana store", "General store", "Provisions", "किराना", "परचून"},
	{"Vegetables", "Sabzi", "सब्ज़ी", "सब्जियाँ", "तरकारी"},
	{"Fruit", "Fruits", "Phal", "फल"},
	{"Dairy", "Milk", "डेयरी", "दूध"},
	{"Spices", "Masala", "मसाले", "मसाला"},
	{"Pharmacy", "Pharmacies", "Chemist", "Medical store", "Medicines", "दवाखाना", "दवाई", "दवा", "फार्मेसी", "मेडिकल"},
	{"Books", "Bookshop", "Bookstore", "Book shop", "किताबें", "पुस्तकें", "किताब", "पुस्तक"},
	{"Stationery", "Stationer", "स्टेशनरी", "लेखन सामग्री"},
	{"Paper", "काग़ज़", "कागज"},
	{"Printing", "Printer", "Print shop", "Press", "छपाई", "मुद्रण"},
	{"Clothing", "Clothes", "Apparel", "Garments", "Kapde", "कपड़े", "वस्त्र", "परिधान"},
	{"Textiles", "Textile", "Fabric", "Fabrics", "Cloth", "कपड़ा"},
	{"Sarees", "Saree", "Saris", "Sari", "साड़ी", "साड़ियाँ"},
	{"Tailor", "Tailors", "Tailoring", "Darzi", "दर्ज़ी", "सिलाई"},
	{"Shoes", "Footwear", "Joote", "जूते", "चप्पल"},
	{"Jewellery", "Jewelry", "Jeweller", "Gehne", "आभूषण", "गहने", "ज़ेवर"},
	{"Electronics", "Electronic", "इलेक्ट्रॉनिक्स"},
	{"Mobile phones", "Mobiles", "Mobile", "Phones", "मोबाइल", "फ़ोन"},
	{"Hardware", "Hardware store", "हार्डवेयर"},
	{"Furniture", "फर्नीचर"},
	{"Toys", "Khilone", "खिलौने"},
	{"Flowers", "Florist", "Phool", "फूल"},
	{"Plants", "Nursery", "पौधे", "नर्सरी"},
	{"Repair", "Repairs", "मरम्मत"},
	{"Salon", "Barber", "Hairdresser", "Beauty parlour", "Beauty parlor", "सैलून", "नाई", "ब्यूटी पार्लर"},
	{"Music", "संगीत"},
	{"Crafts", "Handicrafts", "Handicraft", "हस्तशिल्प"},
	{"Pottery", "Ceramics", "मिट्टी के बर्तन"},
	{"Travel", "Travel agency", "यात्रा"},
	{"Hotel", "Hotels", "होटल"},
	{"Laundry", "Dhobi", "Dry cleaning", "धोबी", "लॉन्ड्री"},
}

var categoryGroups = sync.OnceValue(func() map[string][]string { return namesOf(categories) })

// namesOf maps each folded name of a group to the folded names of the group.
func namesOf(groups [][]string) map[string][]string {
	names := map[string][]string{}
	for _, group := range groups {
		folded := each(group, foldName)
		for _, name := range folded {
			names[name] = folded
		}
	}
	return names
}

// categoryName is the indexed name of a category, folded.
func categoryName(s string) string { return categoryNames(s)[0] }

// categoryNames are the folded names of a category, the indexed one first.
func categoryNames(s string) []string { return namesIn(categoryGroups(), s) }

func namesIn(groups map[string][]string, s string) []string {
	name := foldName(s)
	if all, ok := groups[name]; ok {
		return all
	}
	return []string{name}
}

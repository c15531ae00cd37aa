// The last part of the script of every page: the header of a page that is the same for everyone says
// that this browser is signed in, by a cookie that opens nothing. Without it the link leads to /sign-in,
// which goes on to the account.

const me = document.querySelector("a[data-me]");
if (me && document.cookie.split("; ").includes("stoa_signed_in=1")) {
	me.href = "/account";
	me.textContent = me.dataset.me;
}

// For users who came by a link on another site: browsers do not send the cookie with such a request. This script is only
// served with the cookie, so that it runs if the user is signed in; the page asked for by itself then has the cookie.

location.reload();

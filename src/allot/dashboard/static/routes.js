// Addresses of views: #/view/argument/…?name=value. All names are encoded, so that they can have slashes.

export function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...parts] = path.split("/");
  return { view: view || "floor", parts: parts.map(decoded), query: new URLSearchParams(query || "") };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Puts what was chosen into the address, without a new entry in the browser's history.
export function setQuery(route, values) {
  for (const [name, value] of Object.entries(values)) {
    if (value === "" || value === null || value === undefined) route.query.delete(name);
    else route.query.set(name, value);
  }
  const path = [route.view, ...route.parts.map(encodeURIComponent)].join("/");
  const query = route.query.toString();
  history.replaceState(null, "", `#/${path}${query ? `?${query}` : ""}`);
}

export function objectRoute(kind, key) {
  const slash = key.indexOf("/");
  return `#/${kind}/${encodeURIComponent(key.slice(0, slash))}/${encodeURIComponent(key.slice(slash + 1))}`;
}

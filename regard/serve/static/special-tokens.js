// Special tokens under names that beginners understand.

/** @type {WeakMap<import("/page/token-text.js").Token, import("/page/token-text.js").Token>} so that a token has the same twin every time */
const twins = new WeakMap();

/**
 * @param {import("/page/token-text.js").Token} token
 * @param {string} name what a special token is called
 * @returns {import("/page/token-text.js").Token} the same token under that name; others as they are
 */
export function renameSpecial(token, name) {
  if (!token.special || !/^<\w+>$/.test(token.text)) return token;
  const twin = twins.get(token) ?? { ...token, text: name };
  twins.set(token, twin);
  return twin;
}

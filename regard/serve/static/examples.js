// Texts to begin with, in the words of the built-in corpora.

/** @type {Record<string, string[]>} */
const BY_TASK = {
  translation: [
    "The black cat sleeps under the table .",
    "Who buys the heavy bag ?",
    "Your tired queens do not prepare her bad soup .",
    "Our pear was as small as your big apple .",
    "When did my girl give his doctor 's violins to you ?",
  ],
  language: [
    "Greta was a chemist who lived near the archive . Her cousin Nora owned a faulty robot . Greta was afraid because Nora had touched the robot .",
    "Near the orchard lived a beekeeper called Rosalind . One morning Horace , her cousin , brought her a ripe seed .",
    "In those days Stella worked as a hunter at the ruined tower .",
  ],
  classify: [
    "The story felt absolutely moving but the hotel was by no means perfect .",
    "The pizza is by no means annoying .",
    "I could not claim that this helpline is slow .",
    "Their waiter was delightful and the soup was never bland .",
  ],
  tag: [
    "Victoria Hilton left Olsen & Sons on 19 February 2012 .",
    "The carpenter met Paris Yilmaz in Florence on Sunday .",
    "Our mother Victoria broke a fine china plate .",
    "Lawyers sued Morgan over its guitars , but my neighbour Nelson ate an apple .",
  ],
};

/** @param {import("./api.js").ModelCard | null} model @returns {string[]} */
export function examplesOf(model) {
  if (!model || (model.languages && model.languages[0] !== "en")) return [];
  return BY_TASK[model.task] ?? [];
}

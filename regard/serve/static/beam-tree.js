// The translations that a beam search ended with, as a tree: what they share is written once.

import { make } from "/page/elements.js";
import { displayText, formatWeight } from "/page/token-text.js";

/** @typedef {{output: string, score: number, log_probability: number, tokens?: string[], token_log_probabilities?: number[]}} Candidate */
/** @typedef {{text: string, chance: number, children: Branch[], ends: number[]}} Branch `ends` are the candidates that end here */

const END = "<eos>";

/** @param {number} score @returns {string} */
export function formatScore(score) { return score.toFixed(2).replace("-", "−"); }

/**
 * @param {Candidate[]} candidates
 * @param {number[]} which those that are in this part of the tree
 * @param {number} from the first token that is not written yet
 * @returns {Branch[]}
 */
function branchesOf(candidates, which, from) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  for (const i of which) {
    const token = candidates[i].tokens?.[from];
    if (token !== undefined) groups.set(token, [...(groups.get(token) ?? []), i]);
  }
  return [...groups.values()].map((members) => {
    const [first] = members;
    const tokens = candidates[first].tokens ?? [];
    let to = from + 1;
    // what all of them write next belongs to the same branch
    while (to < tokens.length && members.every((i) => candidates[i].tokens?.[to] === tokens[to])) to++;
    const sum = (candidates[first].token_log_probabilities ?? []).slice(from, to).reduce((total, one) => total + one, 0);
    return {
      text: tokens.slice(from, to).filter((token) => token !== END).join("").trim(), chance: Math.exp(sum),
      children: branchesOf(candidates, members, to), ends: members.filter((i) => candidates[i].tokens?.length === to),
    };
  });
}

/**
 * @param {Candidate[]} candidates the best first
 * @returns {HTMLElement | null} nested lists; null where the tokens are not known
 */
export function beamTree(candidates) {
  if (!candidates.length || candidates.some((one) => !one.tokens?.length)) return null;
  /** @type {(branch: Branch) => HTMLElement} */
  const item = (branch) => {
    const chosen = contains(branch, 0);
    return make("li", { className: chosen ? "chosen" : "" },
      make("span", { className: "rg-branch", title: `probability of this part: ${formatWeight(branch.chance, 3)}` },
        make("bdi", { textContent: branch.text ? displayText(branch.text, 120) : "(end)" }),
        branch.ends.length ? make("span", { className: "rg-branch-score", textContent: formatScore(candidates[branch.ends[0]].score) })
          : make("span", { className: "rg-branch-chance", textContent: formatWeight(branch.chance) }),
        chosen && branch.ends.includes(0) ? make("span", { className: "rg-said", textContent: ", chosen" }) : null),
      branch.children.length ? make("ul", {}, ...branch.children.map(item)) : null);
  };
  return make("ul", { className: "rg-tree", dir: "auto" }, ...branchesOf(candidates, candidates.map((_, i) => i), 0).map(item));
}

/** @param {Branch} branch @param {number} candidate @returns {boolean} */
function contains(branch, candidate) {
  return branch.ends.includes(candidate) || branch.children.some((child) => contains(child, candidate));
}

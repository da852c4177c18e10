/**
 * One of the known words, as its type; absent stays absent.
 *
 * The contract has refused every other text, so meeting one means that contract and code differ, which is a bug.
 */
export function parseEnum<Word extends string>(words: readonly Word[], text: string): Word
export function parseEnum<Word extends string>(words: readonly Word[], text: string | undefined): Word | undefined
export function parseEnum<Word extends string>(words: readonly Word[], text: string | undefined): Word | undefined {
  if (text === undefined) return undefined
  const word = words.find((known) => known === text)
  if (word === undefined) throw new Error(`the contract let "${text}" through, which is none of ${words.join(', ')}`)
  return word
}

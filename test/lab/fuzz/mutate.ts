/** A source of random integers. */
export type Draw = (below: number) => number

/** Pieces that mean something to some reader. */
const DICTIONARY = [
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\',
  ':',
  ',',
  'null',
  'true',
  '1e999',
  '-0',
  '\\u0000',
  '\\ud800',
  '__proto__',
  'constructor',
  '{{',
  '}}',
  '|',
  '?:',
  ':int',
  '<',
  '>',
  '/>',
  '</a>',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '&',
  '&#0;',
  '<!DOCTYPE',
  '\r\n',
  '\n',
  '\t',
  ' ',
  '\u0000',
  '\ufeff',
  '\u00a0',
  'é',
  '😀',
  '\ud800',
  '%',
  '%00',
  '%2e',
  '+',
  '=',
  ';',
  '*',
  '/',
  '-',
  '#',
  '@',
  '(',
  ')',
  '$',
  '.',
  '..',
  '{1000}',
  'L',
  '0',
  '1',
  '99999999999999999999',
  'a',
  'rel="next"',
  'https://',
  '::',
  '~',
  '`',
]
const LENGTH_MAX = 4_096

/** Another input out of one or two: up to eight small changes. */
export function mutate(draw: Draw, input: string, other: string): string {
  let text = input
  for (let count = 1 + draw(8); count > 0; count--) text = change(draw, text, other).slice(0, LENGTH_MAX)
  return text
}

function change(draw: Draw, text: string, other: string): string {
  const at = draw(text.length + 1)
  const end = Math.min(text.length, at + 1 + draw(16))
  switch (draw(6)) {
    case 0:
      return text.slice(0, at) + (DICTIONARY[draw(DICTIONARY.length)] ?? '') + text.slice(at)
    case 1:
      return text.slice(0, at) + text.slice(end)
    case 2:
      return text.slice(0, at) + text.slice(at, end).repeat(1 + draw(40)) + text.slice(end)
    case 3:
      return text.slice(0, at) + String.fromCharCode(draw(256)) + text.slice(at + 1)
    case 4:
      return text.slice(0, at) + other.slice(draw(other.length + 1))
    default:
      return text.slice(0, at) + text.slice(end) + text.slice(at, end)
  }
}

/** The shortest text that still fails, found by leaving out ever smaller pieces. */
export async function shrink(text: string, fails: (text: string) => Promise<boolean>): Promise<string> {
  let shortest = text
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < shortest.length; ) {
      const shorter = shortest.slice(0, at) + shortest.slice(at + size)
      if (await fails(shorter)) shortest = shorter
      else at += size
    }
  return shortest
}

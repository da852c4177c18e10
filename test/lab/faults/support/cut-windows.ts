/** Characters of a secret in a row that no text may show. */
const WINDOW = 8

/** What follows the place where a text is cut. */
export const CUT_MARKS: readonly string[] = ['', '…', '...', '…"}', '").']

/** The parts of a secret that a reader of the text could find: in itself, without escapes, in base64 and hexadecimal. */
export function shownWindows(text: string, secret: string): readonly string[] {
  const texts = readings(text)
  const windows = Array.from({ length: Math.max(0, secret.length - WINDOW + 1) }, (_, at) =>
    secret.slice(at, at + WINDOW),
  )
  return windows.filter((window) => texts.some((each) => each.includes(window.toLowerCase())))
}

function readings(text: string): readonly string[] {
  const plain = text
    .replace(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replace(/%25/g, '%')
    .replace(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  const words = plain.split(/[^\w+/=-]+/)
  const decoded = words.flatMap((word) => [
    ...[0, 1, 2, 3].map((skip) => Buffer.from(word.slice(skip), 'base64').toString('latin1')),
    ...[0, 1].map((skip) => Buffer.from(word.slice(skip), 'hex').toString('latin1')),
  ])
  return [text, plain, ...decoded].map((each) => each.toLowerCase())
}

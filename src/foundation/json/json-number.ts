declare global {
  interface JSON {
    /** A value that `JSON.stringify` writes as this text (ECMA-262, JSON.rawJSON). @throws SyntaxError for anything but a JSON primitive */
    rawJSON(text: string): object
  }
}

/**
 * A JSON number that a double would not write back as it was read: `12345678901234567890`, `1.10`, `1e400`, `-0`.
 *
 * It is written by `JSON.stringify`, `String` and template literals as the text it was read from. In arithmetic and
 * comparisons it is the nearest double. Every other number is an ordinary `number`.
 */
export class JsonNumber {
  /** Source text in the document. */
  readonly text: string

  /** @param text a JSON number */
  constructor(text: string) {
    this.text = text
  }

  toJSON(): object {
    return JSON.rawJSON(this.text)
  }

  toString(): string {
    return this.text
  }

  /** The nearest double; `Infinity` beyond its range. */
  valueOf(): number {
    return Number(this.text)
  }
}

/** True for a JSON number in either form. */
export function isJsonNumber(value: unknown): value is number | JsonNumber {
  return typeof value === 'number' || value instanceof JsonNumber
}

/** A JSON number as a double, the nearest one; any other value stays what it is. */
export function toDouble<Value>(value: Value): Exclude<Value, JsonNumber> | number {
  return value instanceof JsonNumber ? value.valueOf() : (value as Exclude<Value, JsonNumber>)
}

/** The JSON number of this text: a double where it is written back the same, else as text. @param text a JSON number */
export function jsonNumberOf(text: string): number | JsonNumber {
  const double = Number(text)
  return isInexact(double, text) ? new JsonNumber(text) : double
}

const PARTS = /^(-?)0*(\d*?)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/**
 * A JSON number as sign, digits without zeros at either end, and power of ten: `1.50e2` is `15e1`. Equal numbers have equal
 * forms, however they are written, including those that a double cannot represent.
 */
export function decimalForm(value: number | JsonNumber): { readonly text: string; readonly exponent: number } {
  const [, sign = '', whole = '', fraction = '', power = '0'] = PARTS.exec(String(value)) ?? []
  const padded = `${whole}${fraction}`
  let end = padded.length
  while (end > 0 && padded[end - 1] === '0') end -= 1
  const digits = padded.slice(0, end).replace(/^0+/, '')
  if (digits === '') return { text: '0', exponent: 0 }
  const exponent = Number(power) - fraction.length + (padded.length - end)
  return { text: `${sign}${digits}e${exponent}`, exponent }
}

/** True when a double, written as JSON, differs from the text it was parsed from. */
export function isInexact(double: number, text: string): boolean {
  return Object.is(double, -0) || String(double) !== text
}

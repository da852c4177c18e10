/** Longest decimal, in characters; the largest double has 309 digits. */
const LENGTH_MAX = 400

const DECIMAL = /^([+-]?)(\d*)(?:\.(\d*))?(?:[Ee]([+-]?\d{1,4}))?$/

/** Most fraction digits that a currency or a caller has. */
const DIGITS_MAX = 20

interface Decimal {
  readonly isNegative: boolean
  readonly whole: string
  readonly fraction: string
}

/** `$decimal(value)`: a number or its text as a decimal without an exponent; the fraction of a text stays as it is written. */
export function decimal(value: unknown): string | undefined {
  const parsed = parse(value)
  return parsed && write(parsed)
}

/** `$minorToDecimal(value, digits = 2)`: 1250 minor units are `12.50`. */
export function minorToDecimal(value: unknown, digits: unknown = 2): string | undefined {
  const parsed = parse(value)
  return parsed && isDigits(digits) ? write(shift(parsed, -digits)) : undefined
}

/** `$decimalToMinor(value, digits = 2)`: `12.50` is 1250; nothing for a fraction of a minor unit. */
export function decimalToMinor(value: unknown, digits: unknown = 2): number | undefined {
  const parsed = parse(value)
  if (!parsed || !isDigits(digits)) return undefined
  const { isNegative, whole, fraction } = shift(parsed, digits)
  const minor = Number(whole)
  if (/[^0]/.test(fraction) || !Number.isSafeInteger(minor)) return undefined
  return isNegative && minor !== 0 ? -minor : minor
}

function isDigits(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= DIGITS_MAX
}

function parse(value: unknown): Decimal | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const text = String(value).trim()
  const [, sign, whole = '', fraction = '', exponent = '0'] = (text.length <= LENGTH_MAX && DECIMAL.exec(text)) || []
  if (whole === '' && fraction === '') return undefined
  return shift({ isNegative: sign === '-', whole, fraction }, Number(exponent))
}

/** Moves the decimal point to the right. Beyond the range of doubles nothing is left to show. */
function shift({ isNegative, whole, fraction }: Decimal, by: number): Decimal {
  const places = Math.max(-LENGTH_MAX, Math.min(LENGTH_MAX, by))
  if (places >= 0) {
    const moved = fraction.slice(0, places).padEnd(places, '0')
    return { isNegative, whole: whole + moved, fraction: fraction.slice(places) }
  }
  const padded = whole.padStart(-places, '0')
  const at = padded.length + places
  return { isNegative, whole: padded.slice(0, at), fraction: padded.slice(at) + fraction }
}

function write({ isNegative, whole, fraction }: Decimal): string {
  const digits = whole.replace(/^0+/, '') || '0'
  const sign = isNegative && /[^0]/.test(digits + fraction) ? '-' : ''
  return `${sign}${digits}${fraction === '' ? '' : `.${fraction}`}`
}

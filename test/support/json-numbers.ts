/** JSON numbers whose value or text changes through a double, and some that keep both. */
export const NUMBER_TEXTS: readonly string[] = [
  '12345678901234567890',
  '12345678901234567891',
  '12345678901234567892',
  '9007199254740993',
  '-9223372036854775809',
  '0.1000000000000000055511151231257827',
  '123456789.12345678901234',
  '1.10',
  '1.0',
  '-1.50',
  '1E5',
  '3.0e-2',
  '0.0000001',
  '1e-7',
  '1e400',
  '-0',
  '-0.0',
  '0',
  '42',
  '-7.25',
]

/** A JSON list of all of them. */
export const NUMBERS_JSON = `[${NUMBER_TEXTS.join(',')}]`

/**
 * How PostgreSQL's `jsonb` writes a number: every digit, also zeros at the end, no exponent, no negative zero.
 */
function jsonbForm(text: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? []
  const exponent = Number(power)
  const digits = whole + fraction
  const point = whole.length + exponent
  const padded = point < 1 ? '0'.repeat(1 - point) + digits : digits.padEnd(point, '0')
  const integer = padded.slice(0, Math.max(1, point)).replace(/^0+(?=\d)/, '')
  const rest = padded.slice(Math.max(1, point))
  const plain = rest === '' ? integer : `${integer}.${rest}`
  return /[1-9]/.test(plain) ? `${sign}${plain}` : plain
}

/** The list as `jsonb` writes it; without the blanks that it puts in. */
export const NUMBERS_JSONB = `[${NUMBER_TEXTS.map(jsonbForm).join(',')}]`

import { isJsonObject, type Json } from '../../foundation/json/index.ts'
import { toDecimal } from './scalar-values.ts'

/**
 * What is wrong when two amounts of entries, such as debit and credit, differ in their exact sums. Amounts that are no
 * decimals are reported at their own fields, not here.
 */
export function balanceProblem(entries: readonly Json[], [left, right]: readonly [string, string]): string | undefined {
  const lefts = amountsOf(entries, left)
  const rights = amountsOf(entries, right)
  if (lefts === undefined || rights === undefined) return undefined
  const scale = Math.max(...[...lefts, ...rights].map(({ decimals }) => decimals), 0)
  const [leftSum, rightSum] = [sum(lefts, scale), sum(rights, scale)]
  if (leftSum === rightSum) return undefined
  return `must have the same sum of ${left} and ${right}: ${toText(leftSum, scale)} is not ${toText(rightSum, scale)}`
}

/** `units` divided by 10 to the power of `decimals`. */
interface Amount {
  readonly units: bigint
  readonly decimals: number
}

/** `undefined` when one is no decimal; entries without the amount are left out. */
function amountsOf(entries: readonly Json[], name: string): Amount[] | undefined {
  const amounts: Amount[] = []
  for (const entry of entries) {
    const value = isJsonObject(entry) && Object.hasOwn(entry, name) ? (entry[name] ?? null) : null
    if (value === null) continue
    const text = toDecimal(value)
    if (text === undefined) return undefined
    const [whole = '', fraction = ''] = text.split('.')
    amounts.push({ units: BigInt(whole + fraction), decimals: fraction.length })
  }
  return amounts
}

function sum(amounts: readonly Amount[], scale: number): bigint {
  return amounts.reduce((total, { units, decimals }) => total + units * 10n ** BigInt(scale - decimals), 0n)
}

function toText(units: bigint, scale: number): string {
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0')
  const fraction = scale === 0 ? '' : `.${digits.slice(-scale)}`
  return `${units < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${fraction}`
}

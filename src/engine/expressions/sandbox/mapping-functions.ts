import { dateOnly, isoDate } from './dates.ts'
import { decimal, decimalToMinor, minorToDecimal } from './decimals.ts'
import { compact, firstNonEmpty, keyBy, mapValue, omit, pick, removeEmpty } from './records.ts'
import { htmlToText, jsonParse, parseUrl } from './texts.ts'

/** A function for mappings: pure and linear in its arguments; a value of another type than it takes gives nothing. */
export interface MappingFunction {
  readonly call: (...args: readonly unknown[]) => unknown
  readonly argumentsMin: number
  readonly argumentsMax: number
}

/** Most arguments of `$firstNonEmpty`. */
const CHOICES_MAX = 20

/** The functions for mappings by name, for both the inline evaluator and the sandbox; described in `formats/README.md`. */
export const MAPPING_FUNCTIONS: ReadonlyMap<string, MappingFunction> = new Map(
  Object.entries({
    mapValue: { call: mapValue, argumentsMin: 2, argumentsMax: 3 },
    firstNonEmpty: { call: firstNonEmpty, argumentsMin: 1, argumentsMax: CHOICES_MAX },
    removeEmpty: { call: removeEmpty, argumentsMin: 1, argumentsMax: 1 },
    pick: { call: pick, argumentsMin: 2, argumentsMax: 2 },
    omit: { call: omit, argumentsMin: 2, argumentsMax: 2 },
    compact: { call: compact, argumentsMin: 1, argumentsMax: 1 },
    keyBy: { call: keyBy, argumentsMin: 2, argumentsMax: 2 },
    isoDate: { call: isoDate, argumentsMin: 1, argumentsMax: 2 },
    dateOnly: { call: dateOnly, argumentsMin: 1, argumentsMax: 1 },
    decimal: { call: decimal, argumentsMin: 1, argumentsMax: 1 },
    minorToDecimal: { call: minorToDecimal, argumentsMin: 1, argumentsMax: 2 },
    decimalToMinor: { call: decimalToMinor, argumentsMin: 1, argumentsMax: 2 },
    htmlToText: { call: htmlToText, argumentsMin: 1, argumentsMax: 1 },
    jsonParse: { call: jsonParse, argumentsMin: 1, argumentsMax: 1 },
    parseUrl: { call: parseUrl, argumentsMin: 1, argumentsMax: 1 },
  }),
)

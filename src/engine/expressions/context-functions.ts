import { MAPPING_FUNCTIONS } from './sandbox/mapping-functions.ts'

/** Functions that never use the context as an argument. */
const WITHOUT_CONTEXT: ReadonlySet<string> = new Set([
  'count',
  'sum',
  'max',
  'min',
  'average',
  'append',
  'exists',
  'join',
  'map',
  'filter',
  'single',
  'zip',
  'reduce',
  'sort',
  'reverse',
  'distinct',
  'merge',
  'now',
  'millis',
  'uuid',
  'random',
  'type',
  'error',
  'assert',
  ...MAPPING_FUNCTIONS.keys(),
])

/** Functions that use the context only when they are called with fewer arguments than this. */
const CONTEXT_BELOW: ReadonlyMap<string, number> = new Map(
  Object.entries({
    string: 1,
    number: 1,
    boolean: 1,
    not: 1,
    length: 1,
    lowercase: 1,
    uppercase: 1,
    trim: 1,
    keys: 1,
    abs: 1,
    floor: 1,
    ceil: 1,
    round: 1,
    base64encode: 1,
    base64decode: 1,
    hash: 1,
    base64url: 1,
    parseDate: 1,
    toMillis: 1,
    fromMillis: 1,
    contains: 2,
    split: 2,
    match: 2,
    substringBefore: 2,
    substringAfter: 2,
    lookup: 2,
    each: 2,
    sift: 2,
    hmac: 2,
    substring: 2,
    pad: 2,
    replace: 3,
  }),
)

/** Whether a call of a function with so many arguments does not use the context for a missing one; false when unknown. */
export function isContextFree(name: string, argumentCount: number): boolean {
  return WITHOUT_CONTEXT.has(name) || argumentCount >= (CONTEXT_BELOW.get(name) ?? Number.POSITIVE_INFINITY)
}

/** Whether a variable of that name would shadow a function of the tables above. */
export function isKnownFunction(name: string): boolean {
  return WITHOUT_CONTEXT.has(name) || CONTEXT_BELOW.has(name)
}

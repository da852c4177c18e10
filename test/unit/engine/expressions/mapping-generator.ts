import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

/** Draws whole numbers below a limit. */
export type Draw = (below: number) => number

const KEYS = ['a', 'b', 'c', 'type', 'name', 'items', 'status'] as const

const SCALARS: readonly Json[] = [
  ...[0, 1, -1, 2.5, 429, 1e21, 0.1, 1700000000, 1700000000000, true, false, null],
  ...['', 'a', 'work', 'x, y', '429', '12.50', ' x  y ', 'é𝄞z', '0x1f', 'A<b>B</b>&amp;C', '{"a": [1]}'],
  ...[
    '2024-01-31',
    '2024-01-31T10:15:00Z',
    '2024-02-30 10:15:00',
    '/Date(1700000000000)/',
    'https://a.b:8/c?d=1&d=2#e',
  ],
]

/** Keys that look like JSONata's own or like properties of JavaScript objects; rare. */
const ODD_KEYS = [
  'constructor',
  '_jsonata_lambda',
  'tupleStream',
  'outerWrapper',
  'sequence',
  'length',
  '__proto__',
  '1',
]

/** A document that generated paths often hit. */
export function generateInput(draw: Draw): JsonObject {
  return object(draw, 4)
}

function value(draw: Draw, depth: number): Json {
  const kind = draw(depth > 0 ? 10 : 5)
  if (kind < 5) return SCALARS[draw(SCALARS.length)] ?? null
  if (kind < 8) return object(draw, depth - 1)
  const items = Array.from({ length: draw(4) })
  // Lists of alike elements are what mappings see.
  if (kind === 8) return items.map(() => object(draw, depth - 1))
  return items.map(() => (draw(6) === 0 ? value(draw, depth - 1) : (SCALARS[draw(SCALARS.length)] ?? null)))
}

function object(draw: Draw, depth: number): JsonObject {
  const entries = Array.from({ length: draw(6) }, (): [string, Json] => {
    const key = draw(60) === 0 ? ODD_KEYS[draw(ODD_KEYS.length)] : KEYS[draw(KEYS.length)]
    return [key ?? 'a', value(draw, depth)]
  })
  return Object.fromEntries(entries)
}

const LITERALS = ['0', '1', '-1', '2', '2.5', 'true', 'null', '""', '"a"', '"work"', '"x"', '","', '"429"', '[]', '{}']
const OPERATORS = ['=', '=', '=', '!=', '<', '>=', 'and', 'or', 'in', '&', '&', '+', '-', '*', '/', '%']

/** Functions of JSONata that the inline evaluator covers, and some that it does not, with their numbers of arguments. */
const FUNCTIONS: readonly (readonly [name: string, counts: readonly number[]])[] = [
  ...['exists', 'not', 'type', 'count', 'string', 'number', 'lowercase', 'uppercase', 'trim', 'keys', 'distinct'].map(
    (name) => [name, [1]] as const,
  ),
  ...['distinct', 'base64encode', 'floor', 'toMillis', 'merge', 'sum', 'spread', 'sort'].map(
    (name) => [name, [1]] as const,
  ),
  ...['contains', 'substringBefore', 'substringAfter', 'lookup', 'append', 'append'].map(
    (name) => [name, [2]] as const,
  ),
  ['round', [1, 2]],
  ['join', [1, 2]],
  ['split', [2, 2, 3]],
  ['substring', [2, 3]],
  ['replace', [3, 4]],
]

interface Place {
  readonly draw: Draw
  readonly functions: readonly (readonly [name: string, counts: readonly number[]])[]
  /** Variables in scope. */
  readonly variables: readonly string[]
}

/** Functions of the product: their names and numbers of arguments. */
export type ExtraFunctions = readonly (readonly [name: string, counts: readonly number[]])[]

/** Text of an expression as mappings use them, with what surrounds that grammar; most parse, some fail when evaluated. */
export function generateExpression(draw: Draw, extra: ExtraFunctions = []): string {
  return expression({ draw, functions: [...FUNCTIONS, ...extra, ...extra], variables: ['bound'] }, 4)
}

function pick<T>(draw: Draw, choices: readonly T[]): T {
  const chosen = choices[draw(choices.length)]
  if (chosen === undefined) throw new Error('nothing to choose from')
  return chosen
}

function expression(place: Place, depth: number): string {
  const { draw } = place
  if (depth <= 0) return draw(3) === 0 ? pick(draw, LITERALS) : path(place, 0)
  const inner = () => expression(place, depth - 1 - draw(2))
  switch (draw(24)) {
    case 0:
    case 1:
      return pick(draw, LITERALS)
    case 2:
    case 3:
    case 4:
      return `(${inner()} ${pick(draw, OPERATORS)} ${inner()})`
    case 5:
      return `(${inner()} ? ${inner()}${draw(3) === 0 ? '' : ` : ${inner()}`})`
    case 6:
      return `(${inner()} ${pick(draw, ['?:', '??'])} ${inner()})`
    case 7:
      return `{"x": ${inner()}, "y": ${inner()}}`
    case 8:
      return `[${Array.from({ length: draw(4) }, inner).join(', ')}]`
    case 9:
      return draw(4) === 0 ? otherConstruct(place, depth) : inner()
    case 10:
    case 11:
    case 12:
      return higherOrder(place, depth)
    case 13:
    case 14:
    case 15:
    case 16:
      return call(place, depth)
    case 17:
      return `(${inner()})${selections(place, depth)}`
    default:
      return path(place, depth)
  }
}

function path(place: Place, depth: number): string {
  const { draw } = place
  const root = pick(draw, ['', '', '', '', '$.', '$$.', ...place.variables.map((name) => `$${name}.`)])
  const steps = Array.from({ length: 1 + draw(3) }, () => step(place, depth))
  if (draw(12) === 0)
    return pick(draw, ['$', '$$', ...place.variables.map((name) => `$${name}`)]) + selections(place, depth)
  return root + steps.join('.')
}

function step(place: Place, depth: number): string {
  const { draw } = place
  const name = pick(draw, KEYS)
  if (draw(3) > 0) return name
  const inner = () => expression(place, depth - 2)
  switch (draw(7)) {
    case 0:
      return `{"x": ${inner()}, "y": ${inner()}}`
    case 1:
      return `(${inner()})`
    case 2:
      return `$uppercase(${pick(draw, ['$', 'a', 'name'])})`
    case 3:
      return pick(draw, ['*', `${name}[]`, `[${inner()}]`, `${name}^(a)`, `${name}{"k": b}`, '%', '**'])
    default:
      return name + selections(place, depth)
  }
}

/** Indexes and predicates. */
function selections(place: Place, depth: number): string {
  const { draw } = place
  return Array.from({ length: draw(3) }, () => {
    switch (draw(6)) {
      case 0:
        return '[0]'
      case 1:
        return pick(draw, ['[-1]', '[1]', draw(4) === 0 ? '[]' : '[0]', '[2]'])
      case 2:
        return depth > 0 ? `[${expression(place, depth - 2)}]` : '[a]'
      default:
        return `[${pick(draw, KEYS)} ${pick(draw, ['=', '!=', 'in'])} ${pick(draw, ['"work"', '"a"', '1', '$$.a', '["a", 1]'])}]`
    }
  }).join('')
}

function call(place: Place, depth: number): string {
  const { draw } = place
  const [name, counts] = pick(draw, place.functions)
  const args = Array.from({ length: pick(draw, counts) }, () => expression(place, depth - 1 - draw(2)))
  return `$${name}(${args.join(', ')})${draw(8) === 0 ? selections(place, depth) : ''}`
}

function lambda(place: Place, depth: number): string {
  const { draw } = place
  const names = pick(draw, [['v'], ['v'], ['v'], ['w'], ['v', 'i']])
  const inner = { ...place, variables: [...place.variables, ...names] }
  return `function(${names.map((name) => `$${name}`).join(', ')}) { ${expression(inner, depth - 1)} }`
}

function higherOrder(place: Place, depth: number): string {
  const { draw } = place
  const list = draw(4) === 0 ? expression(place, depth - 1) : path(place, depth - 1)
  return `$${pick(draw, ['map', 'filter'])}(${list}, ${lambda(place, depth)})${pick(draw, ['', '', '', '', '', '[]', '[0]'])}`
}

/** Constructs that the inline evaluator leaves to the sandbox. */
function otherConstruct(place: Place, depth: number): string {
  const { draw } = place
  const name = pick(draw, ['t', 'u'])
  const inner = { ...place, variables: [...place.variables, name] }
  return pick(draw, [
    `($${name} := ${expression(place, depth - 1)}; ${expression(inner, depth - 1)})`,
    `(${path(place, depth - 1)} ~> $${pick(draw, ['count', 'distinct', 'keys'])})`,
    `(${path(place, depth - 1)} ~> $map(${lambda(place, depth)}))`,
    `-(${expression(place, depth - 1)})`,
  ])
}

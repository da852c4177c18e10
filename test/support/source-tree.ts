import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** A part of `src/` that imports only wings to its right in `src/README.md`. */
interface Wing {
  readonly imports: readonly string[]
  /** Lines that it should have; above them it gets no feature. */
  readonly budget: number
  /** Lines that it may have: its size, which only goes down until it is the budget. */
  readonly linesMax: number
}

/** The wings of `src/`, highest first. */
export const WINGS: Readonly<Record<string, Wing>> = {
  cli: {
    imports: ['server', 'sync', 'webhooks', 'tools', 'platform', 'engine', 'foundation'],
    budget: 4_500,
    linesMax: 6_946,
  },
  server: {
    imports: ['sync', 'webhooks', 'tools', 'platform', 'engine', 'foundation'],
    budget: 12_500,
    linesMax: 18_518,
  },
  sync: { imports: ['webhooks', 'platform', 'engine', 'foundation'], budget: 8_000, linesMax: 9_789 },
  webhooks: { imports: ['platform', 'engine', 'foundation'], budget: 6_000, linesMax: 7_846 },
  tools: { imports: ['platform', 'engine', 'foundation'], budget: 3_000, linesMax: 4_039 },
  platform: { imports: ['engine', 'foundation'], budget: 14_000, linesMax: 20_027 },
  engine: { imports: ['foundation'], budget: 19_000, linesMax: 29_961 },
  foundation: { imports: [], budget: 13_000, linesMax: 13_259 },
}

/** A TypeScript file of `src/`. */
export interface SourceFile {
  /** From the root of the checkout: `src/platform/accounts/account.ts`. */
  readonly path: string
  readonly text: string
  /** Lines, without the empty one after the last line end. */
  readonly lines: number
  /** Of the eight wings; `main` of `src/main.ts`. */
  readonly wing: string
  /** Below `src/`, of two parts at most: `platform/accounts`; the wing alone where the file stands directly in it. */
  readonly folder: string
  readonly imports: readonly SourceImport[]
}

interface SourceImport {
  /** Of a file from the root of the checkout, or the name of a package. */
  readonly target: string
  /** What it imports by name; empty where it takes all or nothing. */
  readonly names: readonly string[]
  /** It is erased when the program runs. */
  readonly isType: boolean
}

const IMPORT =
  /^(?:import|export)\b([^'"`;]*?)\bfrom\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\bimport\(['"]([^'"]+)['"]\)/gms

/** Reads the sources of a checkout without generated code. */
export function readSourceTree(root: string): readonly SourceFile[] {
  return globSync('src/**/*.ts', { cwd: root })
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), 'utf8')
      const [, wing = '', ...rest] = path.split('/')
      return {
        path,
        text,
        lines: text.split('\n').length - 1,
        wing: rest.length === 0 ? 'main' : wing,
        folder: rest.length === 0 ? 'main' : rest.length === 1 ? wing : `${wing}/${rest[0]}`,
        imports: [...text.matchAll(IMPORT)].map(([, clause = '', from, bare, dynamic]) => ({
          target: targetOf(path, from ?? bare ?? dynamic ?? ''),
          names: namesOf(clause),
          isType: clause.trimStart().startsWith('type '),
        })),
      }
    })
}

function targetOf(path: string, specifier: string): string {
  return specifier.startsWith('.') ? relative('.', join(dirname(path), specifier)) : specifier
}

function namesOf(clause: string): readonly string[] {
  const [, list = ''] = /\{([^}]*)\}/.exec(clause) ?? []
  return list
    .split(',')
    .map((name) =>
      name
        .replace(/^\s*type\s+/, '')
        .replace(/\s+as\s[\s\S]*$/, '')
        .trim(),
    )
    .filter((name) => name !== '')
}

/**
 * Groups of two or more nodes that reach each other, each in alphabetical order (Tarjan's strongly connected components).
 *
 * @param edges of every node; targets that are no node are passed over
 */
export function findCircles(edges: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const found = new Map<string, number>()
  const lowest = new Map<string, number>()
  const stack: string[] = []
  const circles: string[][] = []
  const visit = (node: string): void => {
    const order = found.size
    found.set(node, order)
    lowest.set(node, order)
    stack.push(node)
    for (const target of edges.get(node) ?? []) {
      if (!edges.has(target)) continue
      if (!found.has(target)) visit(target)
      if (stack.includes(target)) lowest.set(node, Math.min(lowest.get(node) ?? order, lowest.get(target) ?? order))
    }
    if (lowest.get(node) !== order) return
    const circle = stack.splice(stack.indexOf(node))
    if (circle.length > 1) circles.push(circle.sort())
  }
  for (const node of edges.keys()) if (!found.has(node)) visit(node)
  return circles
}

/** Which files of `src/` each file imports. */
export function importsByFile(sources: readonly SourceFile[]): ReadonlyMap<string, ReadonlySet<string>> {
  const paths = new Set(sources.map(({ path }) => path))
  return new Map(
    sources.map(({ path, imports }) => [
      path,
      new Set(imports.map(({ target }) => target).filter((target) => paths.has(target))),
    ]),
  )
}

/**
 * Floors of a house of rooms: a room stands above all that it imports, those of one circle beside each other. The ground is floor 1.
 *
 * @param edges of every room
 */
export function countFloors(edges: ReadonlyMap<string, ReadonlySet<string>>): number {
  const circles = findCircles(edges)
  const roomOf = new Map(circles.flatMap((circle) => circle.map((node) => [node, circle[0] ?? node] as const)))
  const joined = new Map<string, Set<string>>()
  for (const [node, targets] of edges) {
    const room = roomOf.get(node) ?? node
    const reached = joined.get(room) ?? new Set<string>()
    for (const target of targets) reached.add(roomOf.get(target) ?? target)
    reached.delete(room)
    joined.set(room, reached)
  }
  const floors = new Map<string, number>()
  const floorOf = (room: string): number => {
    const known = floors.get(room)
    if (known !== undefined) return known
    const floor = 1 + Math.max(0, ...[...(joined.get(room) ?? [])].map(floorOf))
    floors.set(room, floor)
    return floor
  }
  return Math.max(0, ...[...joined.keys()].map(floorOf))
}

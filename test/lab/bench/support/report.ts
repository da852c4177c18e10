import type { LoadResult } from './load.ts'

/** What this server has to do of what bare connect-node does with the same handlers. */
const OF_CONNECT_NODE_MIN = 0.9

/** One measured figure, printed as one JSON line. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The target as it is written down, e.g. `>= 0.35`. */
  readonly target: string
  readonly ok: boolean
}

/** Prints a figure that must be at least `least`. */
export function reportAtLeast(name: string, value: number, unit: string, least: number): void {
  report({ name, value: rounded(value), unit, target: `>= ${least}`, ok: value >= least })
}

/** Prints a figure that must be at most `most`. */
export function reportAtMost(name: string, value: number, unit: string, most: number): void {
  report({ name, value: rounded(value), unit, target: `<= ${most}`, ok: value <= most })
}

/** Prints a figure that others are compared with. */
export function reportBaseline(name: string, value: number, unit: string): void {
  report({ name, value: rounded(value), unit, target: 'floor', ok: true })
}

/** Prints what bare connect-node does with the same handlers, and what this server does of that. */
export function reportOfConnectNode(name: string, own: LoadResult, connectNode: LoadResult): void {
  reportBaseline(`${name}/connect-node`, connectNode.perSecond, 'ops/s')
  reportAtLeast(`${name}/of-connect-node`, own.perSecond / connectNode.perSecond, 'x connect-node', OF_CONNECT_NODE_MIN)
}

/** Prints a figure; one that misses its target makes the process end with 1. */
export function report(figure: Figure): void {
  process.stdout.write(`${JSON.stringify(figure)}\n`)
  if (!figure.ok) process.exitCode = 1
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

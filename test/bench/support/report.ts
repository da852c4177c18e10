import type { LoadResult } from './load.ts'

/** How many times as fast as connect-node this server's own protocols have to be to be kept. */
const SPEED_UP_MIN = 1.5

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

/** Prints what connect-node does with the same handlers, and how many times as fast this server is. */
export function reportSpeedUp(name: string, own: LoadResult, connectNode: LoadResult): void {
  reportBaseline(`${name}/connect-node`, connectNode.perSecond, 'ops/s')
  reportAtLeast(`${name}/speed-up`, own.perSecond / connectNode.perSecond, 'x connect-node', SPEED_UP_MIN)
}

/** Prints a figure; one that misses its target makes the process end with 1. */
export function report(figure: Figure): void {
  process.stdout.write(`${JSON.stringify(figure)}\n`)
  if (!figure.ok) process.exitCode = 1
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

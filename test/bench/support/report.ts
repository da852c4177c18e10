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

function report(figure: Figure): void {
  process.stdout.write(`${JSON.stringify(figure)}\n`)
  if (!figure.ok) process.exitCode = 1
}

function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

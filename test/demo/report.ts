import { styleText } from 'node:util'

const INDENT = '   '
const LABEL_WIDTH = 25
const CHECK_WIDTH = 54

let sections = 0

/** The line above everything. */
export function printTitle(text: string): void {
  print(`\n${styleText('bold', text)}`)
}

/** Begins a numbered step. */
export function printSection(title: string): void {
  sections += 1
  print(`\n${styleText(['bold', 'cyan'], `${sections}  ${title}`)}`)
}

/** A name and what there is to say about it. */
export function printFact(label: string, text: string): void {
  print(`${INDENT}${styleText('dim', label.padEnd(LABEL_WIDTH))} ${text}`)
}

/** Plain text at the indent of a step. */
export function printLine(text: string): void {
  print(`${INDENT}${text}`)
}

/** Something that had to hold, and whether it does. */
export function printCheck(label: string, text: string, isHeld: boolean): void {
  printFact(
    label,
    `${text.padEnd(CHECK_WIDTH)} ${isHeld ? styleText('green', 'ok') : styleText(['bold', 'red'], 'NOT OK')}`,
  )
}

/** A column: its title, its width, and on which side its cells stand. */
export interface Column {
  readonly title: string
  readonly width: number
  readonly side: 'left' | 'right'
}

/** Prints the titles of a table; returns what prints a row. Cells of no text stay empty. */
export function printTable(columns: readonly Column[]): (cells: readonly string[]) => void {
  const rowOf = (cells: readonly string[]) =>
    columns
      .map(({ width, side }, index) => {
        const cell = cells[index] ?? ''
        return side === 'left' ? cell.padEnd(width) : cell.padStart(width)
      })
      .join('  ')
      .trimEnd()
  printLine(styleText('dim', rowOf(columns.map(({ title }) => title))))
  return (cells) => printLine(rowOf(cells))
}

/** `12:34:56` in UTC, the time zone of every cron expression. */
export function timeOf(timestamp: string | number): string {
  return new Date(timestamp).toISOString().slice(11, 19)
}

/** `3 issues`, `1 issue`. */
export function counted(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`
  return `${count} ${noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

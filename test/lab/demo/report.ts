import { styleText } from 'node:util'

const INDENT = '   '
const LABEL_WIDTH = 25
const CHECK_WIDTH = 54

let sections = 0

/** Prints the title. */
export function printTitle(text: string): void {
  print(`\n${styleText('bold', text)}`)
}

/** Prints the title of a numbered step. */
export function printSection(title: string): void {
  sections += 1
  print(`\n${styleText(['bold', 'cyan'], `${sections}  ${title}`)}`)
}

/** Prints a label and a text. */
export function printFact(label: string, text: string): void {
  print(`${INDENT}${styleText('dim', label.padEnd(LABEL_WIDTH))} ${text}`)
}

/** Prints text at the indent of a step. */
export function printLine(text: string): void {
  print(`${INDENT}${text}`)
}

/** Prints a check and its result. */
export function printCheck(label: string, text: string, isCorrect: boolean): void {
  printFact(
    label,
    `${text.padEnd(CHECK_WIDTH)} ${isCorrect ? styleText('green', 'ok') : styleText(['bold', 'red'], 'NOT OK')}`,
  )
}

/** A column of a table. */
export interface Column {
  readonly title: string
  readonly width: number
  readonly align: 'left' | 'right'
}

/** Prints the header of a table. @returns a function that prints a row */
export function printTable(columns: readonly Column[]): (cells: readonly string[]) => void {
  const rowOf = (cells: readonly string[]) =>
    columns
      .map(({ width, align }, index) => {
        const cell = cells[index] ?? ''
        return align === 'left' ? cell.padEnd(width) : cell.padStart(width)
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

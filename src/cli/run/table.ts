/** What a piece of text means; the terminal's colours follow. */
export type Tone = 'plain' | 'strong' | 'quiet' | 'good' | 'busy' | 'odd' | 'bad'

export interface Cell {
  readonly text: string
  readonly tone: Tone
}

/** One column, a cell per row. */
export interface Column {
  readonly cells: readonly Cell[]
  readonly align: 'left' | 'right'
  /** Columns of higher numbers go first when the line is too narrow; 0 stays. */
  readonly dropOrder: number
}

export type ApplyStyle = (tone: Tone, text: string) => string

const GAP = 2

/**
 * Lines of aligned columns that never exceed the width: columns go by their expendability, and then lines are cut. Texts
 * must be of characters one cell wide.
 */
export function renderTable(columns: readonly Column[], width: number, paint: ApplyStyle): string[] {
  let kept = columns.filter(({ cells }) => cells.some(({ text }) => text !== ''))
  while (tableWidth(kept) > width) {
    const worst = Math.max(...kept.map(({ dropOrder: expendable }) => expendable))
    if (worst === 0) break
    kept = kept.filter(({ dropOrder: expendable }) => expendable !== worst)
  }
  const rows = kept[0]?.cells.length ?? 0
  return Array.from({ length: rows }, (_, row) => renderLine(rowCells(kept, row), width, paint))
}

/** Pieces one behind the other, cut to the width. */
export function renderLine(cells: readonly Cell[], width: number, paint: ApplyStyle): string {
  let left = width
  let line = ''
  for (const { text, tone } of cells) {
    const shown = text.length <= left ? text : `${text.slice(0, Math.max(0, left - 1))}…`.slice(0, left)
    left -= shown.length
    line += shown.trim() === '' ? shown : paint(tone, shown)
  }
  return line.trimEnd()
}

function rowCells(columns: readonly Column[], row: number): Cell[] {
  return columns.flatMap(({ cells, align }, at) => {
    const { text = '', tone = 'plain' } = cells[row] ?? {}
    const padding = { text: ' '.repeat(columnWidth(cells) - text.length), tone: 'plain' } as const
    const gap = { text: at === 0 ? '' : ' '.repeat(GAP), tone: 'plain' } as const
    return align === 'left' ? [gap, { text, tone }, padding] : [gap, padding, { text, tone }]
  })
}

function tableWidth(columns: readonly Column[]): number {
  return columns.reduce((sum, { cells }) => sum + columnWidth(cells), GAP * Math.max(0, columns.length - 1))
}

function columnWidth(cells: readonly Cell[]): number {
  return Math.max(0, ...cells.map(({ text }) => text.length))
}

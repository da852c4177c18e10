/** A Markdown table with its columns aligned, as the formatter of the repository writes it. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

/** The transitions of a state machine as a table: from, cause, to. @param columns further ones, by cause */
export function transitionTable(
  transitions: Readonly<Record<string, Readonly<Record<string, string>>>>,
  columns: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
): string {
  const rows = Object.entries(transitions).flatMap(([from, causes]) =>
    Object.entries(causes).map(([cause, to]) => [
      from === 'new' ? '(none)' : `\`${from}\``,
      `\`${cause}\``,
      `\`${to}\``,
      ...Object.values(columns).map((byCause) => `\`${byCause[cause]}\``),
    ]),
  )
  return markdownTable(['from', 'cause', 'to', ...Object.keys(columns)], rows)
}

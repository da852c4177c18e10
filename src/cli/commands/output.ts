/**
 * Everything that commands print passes here: definitions, servers and third parties decide what their texts hold, and a
 * terminal would obey control characters in them (moving the cursor, clearing the screen, forging lines).
 */

/** Controls (C0, DEL, C1), line separators, and the characters that reorder text. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** The text as one line, with control characters shown as escapes: `\n`, `\u001b`. */
export function escapeControls(text: string): string {
  return text.replace(
    CONTROLS,
    (character) => SHORT[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Prints one line. Control characters in it are shown as escapes, line breaks too. */
export function printLine(line: string): void {
  process.stdout.write(`${escapeControls(line)}\n`)
}

/** Prints lines, each as `printLine` does. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${escapeControls(line)}\n`).join(''))
}

/** Prints lines whose parts were escaped before they got colours. */
export function printStyledLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

/** Prints a value as JSON, whose only line breaks are its own: those of texts are escapes already. */
export function printJson(value: unknown): void {
  printLines(JSON.stringify(value, undefined, 2).split('\n'))
}

/** Prints an error to stderr, after the name of the program. */
export function printError(lines: readonly string[]): void {
  process.stderr.write(`patchbay: ${lines.map(escapeControls).join('\n')}\n`)
}

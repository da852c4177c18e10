import type { OptionsSource } from '../../engine/definitions/index.ts'
import type { FormOption } from '../../engine/formats/index.ts'
import { getAtPath, isJsonNumber, type Json } from '../../foundation/json/index.ts'

/** Longest id of an option; a longer one could not be submitted. */
const VALUE_LENGTH_MAX = 512

/** Longest label and second line; the rest is cut off. */
const LABEL_LENGTH_MAX = 256

/** Control characters, and those that change the direction of the text around them. */
const UNPRINTABLE = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu

/** A text of a third party or a browser as a label: one line of at most 256 characters, well formed. */
export function cleanLabel(text: string): string {
  const line = text
    .slice(0, 2 * LABEL_LENGTH_MAX)
    .replace(UNPRINTABLE, ' ')
    .trim()
  return line.slice(0, LABEL_LENGTH_MAX).toWellFormed()
}

/** The options of a page of records, each id once. A record without an id that can be chosen is left out. */
export function optionsFrom(
  { value, label, subText }: Pick<OptionsSource, 'value' | 'label' | 'subText'>,
  records: readonly Json[],
): FormOption[] {
  const options = new Map<string, FormOption>()
  for (const record of records) {
    const id = scalarText(getAtPath(record, value))
    if (id === '' || id.length > VALUE_LENGTH_MAX || !id.isWellFormed() || /\p{Cc}/u.test(id) || options.has(id))
      continue
    const name = label === undefined ? '' : cleanLabel(scalarText(getAtPath(record, label)))
    const second = subText === undefined ? '' : cleanLabel(scalarText(getAtPath(record, subText)))
    options.set(id, {
      value: id,
      label: name === '' ? cleanLabel(id) : name,
      ...(second === '' ? {} : { subText: second }),
    })
  }
  return [...options.values()]
}

function scalarText(value: Json | undefined): string {
  if (typeof value === 'string') return value
  return isJsonNumber(value) || typeof value === 'boolean' ? String(value) : ''
}

/** Whether an option contains a text, in any case. */
export function matchesSearch({ value, label, subText = '' }: FormOption, search: string): boolean {
  const wanted = search.toLowerCase()
  return [label, subText, value].some((text) => text.toLowerCase().includes(wanted))
}

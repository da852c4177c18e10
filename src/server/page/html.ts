/** Markup whose values are escaped. Only `html` makes it, and nothing else is sent to a browser as markup. */
export class Html {
  readonly markup: string

  private constructor(markup: string) {
    this.markup = markup
  }

  /** Joins the literal parts of a template, which this project wrote, with values, which it did not. */
  static fromTemplate(parts: TemplateStringsArray, values: readonly HtmlValue[]): Html {
    const pieces = parts.map((part, index) => (index === 0 ? part : `${markupOf(values[index - 1])}${part}`))
    return new Html(pieces.join(''))
  }
}

/** What a template may contain: texts and numbers are escaped; `undefined`, `null` and `false` print nothing. */
export type HtmlValue = Html | string | number | undefined | null | false | readonly HtmlValue[]

/**
 * Template tag for HTML. Values are escaped for text and for attributes in double quotes; every attribute with a value must
 * have those quotes.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return Html.fromTemplate(parts, values)
}

function markupOf(value: HtmlValue): string {
  if (value instanceof Html) return value.markup
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value))
  return value.map(markupOf).join('')
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
}

/** An http or https URL for a link; undefined for any other text, such as `javascript:`. */
export function linkUrl(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) ? url.href : undefined
}

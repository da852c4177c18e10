import german from './texts/de.json' with { type: 'json' }
import english from './texts/en.json' with { type: 'json' }

/** The key of a text; every language has the same ones. */
export type TextKey = keyof typeof english

/** A language of the page, as a language tag. */
type Language = 'en' | 'de'

const TEXTS: Readonly<Record<Language, Readonly<Record<TextKey, string>>>> = { en: english, de: german }

const DEFAULT_LANGUAGE: Language = 'en'

/** The texts of one language. */
export interface Texts {
  readonly language: Language
  readonly direction: 'ltr' | 'rtl'
  /** The text with its `{parameters}` filled in; it is plain text, not markup. */
  text(key: TextKey, parameters?: Readonly<Record<string, string | number>>): string
  /** One of the texts `<prefix>.one` and `<prefix>.other`, by the plural rules of the language. */
  plural(prefix: PluralPrefix, count: number): string
  /** Whether there is a text of the key. */
  has(key: string): key is TextKey
}

/** Prefixes of keys that have the plural forms `one` and `other`. */
type PluralPrefix = TextKey extends infer Key ? (Key extends `${infer Prefix}.other` ? Prefix : never) : never

/** The texts in the first of the given languages that the page has; English without one. */
export function textsFor(tags: readonly string[]): Texts {
  const language = tags.map(languageOf).find((found) => found !== undefined) ?? DEFAULT_LANGUAGE
  const texts = TEXTS[language]
  const text: Texts['text'] = (key, parameters = {}) =>
    texts[key].replace(/\{(\w+)\}/g, (placeholder, name) => String(parameters[name] ?? placeholder))
  const has = (key: string): key is TextKey => Object.hasOwn(texts, key)
  const rules = new Intl.PluralRules(language)
  return {
    language,
    direction: texts['language.direction'] === 'rtl' ? 'rtl' : 'ltr',
    text,
    plural(prefix, count) {
      const form = rules.select(count) === 'one' ? 'one' : 'other'
      const key = `${prefix}.${form}`
      return has(key) ? text(key, { count: new Intl.NumberFormat(language).format(count) }) : ''
    },
    has,
  }
}

/** A text about the third party: while its name is not known, "the service", with a capital where the text begins. */
export function textAbout(
  texts: Texts,
  key: TextKey,
  integration: string | undefined,
  parameters: Readonly<Record<string, string | number>> = {},
): string {
  if (integration !== undefined) return texts.text(key, { ...parameters, integration })
  const text = texts.text(key, { ...parameters, integration: texts.text('error.provider') })
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The name of a category in the language of the page; one that the page does not know as its words. */
export function categoryName(texts: Texts, category: string): string {
  const key = `category.${category}`
  if (texts.has(key)) return texts.text(key)
  const words = category.replace(/[_-]+/g, ' ').trim()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Most languages of an `Accept-Language` that are looked at. */
const ACCEPTED_MAX = 20

/** The language tags of a header `Accept-Language`, the most wanted first (RFC 9110, 12.5.4). */
export function acceptedLanguages(header: string | undefined): readonly string[] {
  const ranges = (header ?? '').split(',', ACCEPTED_MAX).map((range) => {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    return { tag, weight: weight === undefined ? 1 : Number(weight.slice(2)) }
  })
  return ranges
    .filter(({ tag, weight }) => tag !== '' && weight > 0)
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag)
}

function languageOf(tag: string): Language | undefined {
  const [language = ''] = tag.toLowerCase().split('-')
  return Object.hasOwn(TEXTS, language) ? (language as Language) : undefined
}

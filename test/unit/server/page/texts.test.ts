import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { LINK_ERRORS } from '../../../../src/platform/links/error-codes.ts'
import { acceptedLanguages, textAbout, textsFor } from '../../../../src/server/page/texts.ts'

const ROOT = join(import.meta.dirname, '../../../../src/server/page')
const FOLDER = join(ROOT, 'texts')
const languages = readdirSync(FOLDER).map((file) => ({
  language: file.replace('.json', ''),
  texts: JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Record<string, string>,
}))
const english = languages.find(({ language }) => language === 'en')!.texts

const placeholders = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([each]) => each).sort()

describe.each(languages)('the texts in $language', ({ texts }) => {
  it('have the same keys as in English, in the same order', () => {
    expect(Object.keys(texts)).toEqual(Object.keys(english))
  })

  it('have the same parameters, none is empty', () => {
    const broken = Object.entries(texts).filter(
      ([key, text]) => text.trim() === '' || `${placeholders(text)}` !== `${placeholders(english[key] ?? '')}`,
    )
    expect(broken).toEqual([])
  })

  it('have title and advice for every error code', () => {
    const missing = Object.keys(LINK_ERRORS).flatMap((code) =>
      [`error.${code}.title`, `error.${code}.advice`].filter((key) => !Object.hasOwn(texts, key)),
    )
    expect(missing).toEqual([])
  })
})

describe('the keys', () => {
  it('are each used by a page', () => {
    const sources = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n')
    const isUsed = (key: string) => {
      const [stem = '', last = ''] = [key.slice(0, key.lastIndexOf('.')), key.slice(key.lastIndexOf('.') + 1)]
      const isDerived = ['title', 'advice', 'one', 'other'].includes(last) && sources.includes(`'${stem}'`)
      const isTable =
        /^(?:category|error|request|violation)\.|^progress\.(?:state|exchanging|post_install|validating)/.test(key)
      const isKind = ['pending.title', 'waiting.title'].includes(key)
      return isDerived || isTable || isKind || sources.includes(`'${key}'`)
    }
    expect(Object.keys(english).filter((key) => !isUsed(key))).toEqual([])
  })
})

describe('textsFor', () => {
  it.each([
    [['de'], 'de'],
    [['de-AT'], 'de'],
    [['DE'], 'de'],
    [['fr', 'de', 'en'], 'de'],
    [['fr'], 'en'],
    [[], 'en'],
    [['__proto__'], 'en'],
  ])('%j is read in %s', (tags, language) => {
    expect(textsFor(tags).language).toBe(language)
  })

  it('fills in parameters as plain text, and counts by the rules of the language', () => {
    const { text, plural } = textsFor(['en'])
    expect(text('form.title', { integration: '{brand} $& <b>' })).toBe('Connect {brand} $& <b>')
    expect([plural('integration.found', 1), plural('integration.found', 1_200)]).toEqual([
      '1 service',
      '1,200 services',
    ])
  })
})

describe('textAbout', () => {
  it.each([
    ['en', 'error.provider_error.title', 'monday.com', 'monday.com reported an error'],
    ['en', 'error.provider_error.title', undefined, 'The service reported an error'],
    [
      'de',
      'error.token_exchange_failed.advice',
      undefined,
      'Der Dienst hat die Anmeldung nicht abgeschlossen. Versuchen Sie es erneut.',
    ],
  ] as const)('in %s, %s of %s', (language, key, integration, expected) => {
    expect(textAbout(textsFor([language]), key, integration)).toBe(expected)
  })

  it('needs no other case of a name in German', () => {
    const preposition = /\b(?:bei|mit|von|zu|für|an|um) \{integration\}/
    const german = languages.find(({ language }) => language === 'de')!.texts
    const inflected = Object.entries(german).filter(([key, text]) => key.startsWith('error.') && preposition.test(text))
    expect(inflected).toEqual([])
  })
})

describe('acceptedLanguages', () => {
  it.each([
    ['de-DE,de;q=0.9,en;q=0.8', ['de-DE', 'de', 'en']],
    ['en;q=0.2, de', ['de', 'en']],
    ['en;q=0', []],
    ['*', ['*']],
    ['', []],
    [undefined, []],
    ['de;q=x,en', ['en']],
    [',,;;', []],
  ])('%j means %j', (header, tags) => {
    expect(acceptedLanguages(header)).toEqual(tags)
  })
})

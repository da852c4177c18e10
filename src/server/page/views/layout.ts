import { type Html, html, linkUrl } from '../html.ts'
import type { TextKey, Texts } from '../texts.ts'

/** A name with its picture, as the top of the page and the list of services show it. */
export interface NamedLogo {
  readonly name: string
  /** Path of the stored logo on this server; absent: initials are shown. */
  readonly logoPath?: string | undefined
}

/** What surrounds the content of every step. */
export interface PageFrame {
  readonly texts: Texts
  /** The customer of this product whose page it is; absent: no name is shown. */
  readonly brand: NamedLogo | undefined
  /** `#rrggbb`; absent: the page's own accent colour. */
  readonly accentColor: string | undefined
  readonly integration: NamedLogo | undefined
  /** Query that identifies this version of style and script, for caches. */
  readonly assetVersion: string
  /** The page is in an iframe of the customer's page. */
  readonly isFramed: boolean
  /** Colour scheme that the application asked for; empty: the browser's. */
  readonly theme: string
}

/** The content of one page. */
export interface PageContent {
  readonly title: string
  readonly body: Html
  /** Path that the cancel button posts to; absent: there is nothing to cancel. */
  readonly cancelPath?: string | undefined
  /** Path of the previous step. */
  readonly backPath?: string | undefined
  /** Seconds until a browser without script loads the page, or `refreshUrl`, again. */
  readonly refreshSeconds?: number | undefined
  readonly refreshUrl?: string | undefined
  /** Facts for the script, as `data-…` attributes of `main`; never a secret. */
  readonly data?: Readonly<Record<string, string | undefined>>
  /** A finished or failed flow: no line about credentials. */
  readonly isEnd?: boolean
  /** A large sign above the title; the title says the same in words. */
  readonly mark?: 'done' | 'failed'
}

/** The whole document. */
export function renderPage(frame: PageFrame, content: PageContent): string {
  const { texts, brand, integration, assetVersion } = frame
  const titles = [content.title, brand?.name].filter((part) => part !== undefined)
  return html`<!doctype html>
<html lang="${texts.language}" dir="${texts.direction}"${frame.isFramed && html` data-frame`}${frame.theme !== '' && html` data-theme="${frame.theme}"`}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${titles.join(' · ')}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/connect/page.css?${assetVersion}">
${accentLink(frame.accentColor)}${refreshTag(content)}<script src="/connect/page.js?${assetVersion}" type="module"></script>
</head>
<body>
<a class="skip" href="#content">${texts.text('page.skip')}</a>
<main class="card" id="content" tabindex="-1"${dataAttributes(content.data ?? {})}>
${pairOf(brand, integration)}${markOf(content.mark)}<h1 tabindex="-1">${content.title}</h1>
${content.body}
</main>
${footOf(texts, content)}
</body>
</html>
`.markup
}

/** A logo, or the initials where there is none. The name is beside it, so it has no text of its own. */
export function logoOf({ name, logoPath }: NamedLogo): Html {
  return logoPath === undefined
    ? html`<span class="logo initials" aria-hidden="true">${initials(name)}</span>`
    : html`<img class="logo" src="${logoPath}" alt="" width="40" height="40" loading="lazy" data-initials="${initials(name)}">`
}

/** What a third party said, unchanged, behind a fold. */
export function detailsOf(texts: Texts, message: string | undefined, integration: NamedLogo | undefined): Html | false {
  if (message === undefined || message === '') return false
  const summary =
    integration === undefined
      ? texts.text('page.details.plain')
      : texts.text('page.details', { integration: integration.name })
  return html`<details><summary>${summary}</summary><pre dir="auto">${message}</pre></details>`
}

/** A link to another site: opens in a new tab, and its text says so. */
export function externalLink(texts: Texts, url: string | undefined, label: string): Html | false {
  const href = linkUrl(url)
  if (href === undefined) return false
  return html`<a href="${href}" target="_blank" rel="noopener noreferrer">${label}<span class="visually-hidden"> (${texts.text('form.newTab')})</span></a>`
}

/** The text of a key with a variant that names the customer, `<key>.brand`, where one is known. */
export function brandedText(
  { texts, brand }: Pick<PageFrame, 'texts' | 'brand'>,
  keys: { readonly plain: TextKey; readonly branded: TextKey },
  parameters: Readonly<Record<string, string>> = {},
): string {
  return brand === undefined
    ? texts.text(keys.plain, parameters)
    : texts.text(keys.branded, { ...parameters, brand: brand.name })
}

function accentLink(color: string | undefined): Html | false {
  return color !== undefined && html`<link rel="stylesheet" href="/connect/accent.css?color=${color.slice(1)}">\n`
}

function refreshTag({ refreshSeconds, refreshUrl }: PageContent): Html | false {
  if (refreshSeconds === undefined) return false
  const target = refreshUrl === undefined ? '' : `;url=${refreshUrl}`
  return html`<noscript><meta http-equiv="refresh" content="${refreshSeconds}${target}"></noscript>\n`
}

function dataAttributes(data: Readonly<Record<string, string | undefined>>): readonly (Html | false)[] {
  return Object.entries(data).map(([name, value]) => value !== undefined && html` data-${name}="${value}"`)
}

/** Who connects to whom. */
function pairOf(brand: NamedLogo | undefined, integration: NamedLogo | undefined): Html | false {
  if (brand === undefined && integration === undefined) return false
  if (brand === undefined || integration === undefined) {
    const only = brand ?? integration
    return only !== undefined && html`<div class="pair">${logoOf(only)}<span class="name">${only.name}</span></div>\n`
  }
  return html`<div class="pair">${logoOf(brand)}<span class="link" aria-hidden="true"></span>${logoOf(integration)}<span class="name">${brand.name} · ${integration.name}</span></div>\n`
}

function markOf(mark: PageContent['mark']): Html | false {
  return mark !== undefined && html`<span class="mark large ${mark}" aria-hidden="true"></span>\n`
}

function footOf(texts: Texts, { cancelPath, isEnd }: PageContent): Html {
  const cancel =
    cancelPath !== undefined &&
    html`<form method="post" action="${cancelPath}" data-cancel><button class="plain" type="submit">${texts.text('page.cancel')}</button></form>`
  const security = isEnd !== true && html`<p>${texts.text('page.security')}</p>`
  return html`<footer class="foot">${security}${cancel}</footer>`
}

/** Most initials that fit into the place of a logo. */
const INITIALS_MAX = 2
const GRAPHEMES = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** First letters of the first two words, or the first two of the only one; what is in brackets counts where there is nothing else. */
function initials(name: string): string {
  const words = wordsOf(name.replace(/\([^)]*\)?/gu, ' '))
  const [first, ...others] = words.length > 0 ? words : wordsOf(name)
  if (first === undefined) return '?'
  const count = others.length > 0 ? 1 : INITIALS_MAX
  return [first, ...others]
    .slice(0, INITIALS_MAX)
    .map((word) => firstGraphemes(word, count))
    .join('')
    .toLocaleUpperCase()
}

/** Letters and digits with their marks: no punctuation, no symbols. */
function wordsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu) ?? []
}

/** What a reader sees as characters: a letter with its marks is one. */
function firstGraphemes(word: string, count: number): string {
  return Array.from(GRAPHEMES.segment(word), ({ segment }) => segment)
    .slice(0, count)
    .join('')
}

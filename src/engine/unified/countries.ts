/** Names and codes of three letters that are common and that the table of the platform lacks. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  usa: 'US',
  'united states of america': 'US',
  uk: 'GB',
  gbr: 'GB',
  'great britain': 'GB',
  england: 'GB',
  deu: 'DE',
  fra: 'FR',
  esp: 'ES',
  ita: 'IT',
  nld: 'NL',
  'the netherlands': 'NL',
  holland: 'NL',
  can: 'CA',
  aus: 'AU',
  ind: 'IN',
  jpn: 'JP',
  chn: 'CN',
  bra: 'BR',
  mex: 'MX',
  che: 'CH',
  aut: 'AT',
  irl: 'IE',
  swe: 'SE',
  nor: 'NO',
  dnk: 'DK',
  fin: 'FI',
  pol: 'PL',
  prt: 'PT',
  bel: 'BE',
  'czech republic': 'CZ',
  turkey: 'TR',
}

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const NAME_LENGTH_MAX = 64

let codeByName: ReadonlyMap<string, string> | undefined

/** A country as ISO 3166-1 alpha-2: of a code of two letters, or of an English name. `undefined` when it is none. */
export function toCountry(text: string): string | undefined {
  const name = text.length > NAME_LENGTH_MAX ? '' : text.trim().toLowerCase()
  if (name === '') return undefined
  codeByName ??= namesOfCountries()
  return codeByName.get(name)
}

/** Codes by code and by English name, in lower case. */
function namesOfCountries(): ReadonlyMap<string, string> {
  const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' })
  const codes = LETTERS.flatMap((first) => LETTERS.map((second) => first + second))
  const known = codes.flatMap((code) => {
    const name = NOT_COUNTRIES.has(code) ? undefined : names.of(code)
    return name === undefined ? [] : [[code.toLowerCase(), code] as const, [name.toLowerCase(), code] as const]
  })
  return new Map([...known, ...Object.entries(OTHER_NAMES)])
}

/** Codes of regions, groups and former countries that the platform names, but ISO 3166-1 does not assign. */
const NOT_COUNTRIES: ReadonlySet<string> = new Set(
  'AC AN BU CP CQ CS DD DG DY EA EU EZ FQ FX HV IC JT MI NH NQ NT PC PU PZ QO QU RH SU TA TP UK UN VD WK XA XB XK YD YU ZR ZZ'.split(
    ' ',
  ),
)

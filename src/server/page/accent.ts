/** An sRGB colour, each channel 0 to 255. */
type Rgb = readonly [red: number, green: number, blue: number]

/** The accent colour as one colour scheme uses it. */
export interface AccentVariant {
  /** For links, borders and the background of buttons, `#rrggbb`. */
  readonly accent: string
  /** For text on that background, `#rrggbb`. */
  readonly onAccent: string
}

/** Surfaces of the page that the accent colour is seen on; the same values are in `assets/page.css`. */
const SURFACES = {
  light: ['#ffffff', '#f5f6f8'],
  dark: ['#1b1d22', '#121317'],
} as const

/** Contrast of text, level AA (WCAG 2.2, 1.4.3). */
const CONTRAST_MIN = 4.5

/** Share of white or black that is mixed in per step. */
const MIX_STEP = 0.02

/**
 * Variants of an accent colour with a contrast of at least 4.5:1 against the surfaces of each colour scheme: darkened for
 * the light one, lightened for the dark one, unchanged where it is enough.
 *
 * @param color `#rrggbb`
 */
export function accentVariants(color: string): Readonly<Record<'light' | 'dark', AccentVariant>> {
  return {
    light: variantOn(SURFACES.light, parseColor(color), [0, 0, 0]),
    dark: variantOn(SURFACES.dark, parseColor(color), [255, 255, 255]),
  }
}

/** The contrast ratio of two colours `#rrggbb`, 1 to 21 (WCAG 2.2). */
export function contrastRatio(one: string, other: string): number {
  return ratio(luminance(parseColor(one)), luminance(parseColor(other)))
}

function variantOn(surfaces: readonly string[], color: Rgb, extreme: Rgb): AccentVariant {
  const luminances = surfaces.map((surface) => luminance(parseColor(surface)))
  const isReadable = (candidate: Rgb) =>
    luminances.every((surface) => ratio(luminance(candidate), surface) >= CONTRAST_MIN)
  let share = 0
  let accent = color
  while (!isReadable(accent) && share < 1) {
    share += MIX_STEP
    accent = mix(color, extreme, Math.min(share, 1))
  }
  const isWhiteReadable = ratio(luminance(accent), 1) >= CONTRAST_MIN
  return { accent: formatColor(accent), onAccent: isWhiteReadable ? '#ffffff' : '#000000' }
}

function mix(color: Rgb, other: Rgb, share: number): Rgb {
  const channel = (index: 0 | 1 | 2) => Math.round(color[index] * (1 - share) + other[index] * share)
  return [channel(0), channel(1), channel(2)]
}

function ratio(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
}

/** Relative luminance, 0 to 1 (WCAG 2.2). */
function luminance([red, green, blue]: Rgb): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

function linear(channel: number): number {
  const value = channel / 255
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
}

function parseColor(color: string): Rgb {
  const number = Number.parseInt(color.slice(1), 16)
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255]
}

function formatColor([red, green, blue]: Rgb): string {
  return `#${[red, green, blue].map((channel) => channel.toString(16).padStart(2, '0')).join('')}`
}

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { accentVariants, contrastRatio } from '../../../../src/server/page/accent.ts'

const css = readFileSync(join(import.meta.dirname, '../../../../src/server/page/assets/page.css'), 'utf8')
const SURFACES = { light: ['#ffffff', '#f5f6f8'], dark: ['#1b1d22', '#121317', '#24272e'] }

const anyColor = fc.integer({ min: 0, max: 0xffffff }).map((number) => `#${number.toString(16).padStart(6, '0')}`)

describe('contrastRatio', () => {
  it.each([
    ['#000000', '#ffffff', 21],
    ['#ffffff', '#ffffff', 1],
    ['#777777', '#ffffff', 4.48],
    ['#0000ff', '#ffffff', 8.59],
  ])('of %s and %s is %d', (one, other, ratio) => {
    expect(contrastRatio(one, other)).toBeCloseTo(ratio, 2)
    expect(contrastRatio(other, one)).toBeCloseTo(ratio, 2)
  })
})

describe('accentVariants', () => {
  it('of any colour are readable on the surfaces of both schemes, and so is the text on them', () => {
    fc.assert(
      fc.property(anyColor, (color) => {
        const variants = accentVariants(color)
        for (const scheme of ['light', 'dark'] as const) {
          const { accent, onAccent } = variants[scheme]
          for (const surface of SURFACES[scheme].slice(0, 2))
            expect(contrastRatio(accent, surface)).toBeGreaterThanOrEqual(4.5)
          expect(contrastRatio(accent, onAccent)).toBeGreaterThanOrEqual(4.5)
        }
      }),
    )
  })

  it.each([
    ['#1f5fbf', 'light', '#1f5fbf'],
    ['#84b1f5', 'dark', '#84b1f5'],
    ['#ffff00', 'dark', '#ffff00'],
  ] as const)('keep %s in the %s scheme, where it is readable', (color, scheme, accent) => {
    expect(accentVariants(color)[scheme].accent).toBe(accent)
  })

  it.each(['#ffffff', '#ffff00', '#ff8800'])('darken %s on light surfaces', (color) => {
    expect(contrastRatio(accentVariants(color).light.accent, '#ffffff')).toBeLessThan(7)
  })
})

describe('the stylesheet', () => {
  /** Custom properties of a rule. */
  const properties = (selector: string) => {
    const block = css.slice(css.indexOf(selector)).split('}', 1)[0] ?? ''
    return Object.fromEntries(
      [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]),
    )
  }

  it.each([
    ['light', ':root {'],
    ['dark', ':root:not([data-theme="light"]) {'],
    ['dark', ':root[data-theme="dark"] {'],
  ] as const)('has readable colours in the %s scheme (%s)', (scheme, selector) => {
    const colors = properties(selector)
    expect([colors.surface, colors.page]).toEqual(SURFACES[scheme].slice(0, 2))
    for (const name of ['text', 'muted', 'accent', 'bad', 'good'])
      for (const surface of [colors.surface, colors.page])
        expect([name, contrastRatio(colors[name] ?? '', surface ?? '') >= 4.5]).toEqual([name, true])
    const onSunken = contrastRatio(colors.muted ?? '', colors.sunken ?? '')
    const onBad = contrastRatio(colors.bad ?? '', colors['bad-surface'] ?? '')
    const border = contrastRatio(colors['line-strong'] ?? '', colors.surface ?? '')
    expect({ onSunken: onSunken >= 4.5, onBad: onBad >= 4.5, border: border >= 3 }).toEqual({
      onSunken: true,
      onBad: true,
      border: true,
    })
  })
})

import { describe, expect, it } from 'vitest'
import { readLogos, renderLogos } from '../../../../src/cli/codegen/logos.ts'
import { SHIPPED_NAMES } from '../../../../src/engine/catalog/definitions.ts'
import { findShippedLogo } from '../../../../src/engine/catalog/logos.ts'

/** No package has a square logo of theirs: pages show their initials, and the README of the engine names them. */
const WITHOUT_LOGO = [
  'apollo',
  'ashby',
  'bamboohr',
  'freshdesk',
  'hubstaff',
  'klaviyo',
  'open-meteo',
  'pipedrive',
  'workable',
]

describe('the logos of shipped definitions', () => {
  it('are what `npm run generate:logos` writes', () => {
    expect(readLogos()).toEqual(renderLogos())
  })

  it('are those of definitions that ship, and all have one but these', () => {
    const named = [...readLogos().keys()].map((file) => file.replace('.svg', ''))
    expect(named.filter((name) => !SHIPPED_NAMES.includes(name))).toEqual([])
    expect(SHIPPED_NAMES.filter((name) => findShippedLogo(name) === undefined)).toEqual(WITHOUT_LOGO)
  })

  it('are square pictures that load nothing and run nothing', () => {
    for (const [file, svg] of readLogos()) {
      const [, width, height] = /^<svg [^>]*viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)">/.exec(svg) ?? []
      expect([file, width]).toEqual([file, height ?? 'a height'])
      expect([file, /<script|<image|<foreignObject|\son\w+=|https?:\/\/(?!www\.w3\.org\/)/i.exec(svg)]).toEqual([
        file,
        null,
      ])
      expect([file, svg.length < 8_192, svg.includes('currentColor')]).toEqual([file, true, false])
    }
  })
})

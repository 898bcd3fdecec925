// The check of links of `npm run site`, which runs on the built package: what leads nowhere is found, and nothing else.
import { expect, it } from 'vitest'
import { deadLinks } from '../../scripts/site/links.mjs'
import { linksOf } from '../../src/docs/pages/page.ts'
import type { PageLinks, Target } from '../../src/docs/pages/page.ts'

const page = (path: string, ...targets: readonly Target[]): PageLinks =>
  linksOf({
    ...{ path, title: path, crumbs: [] },
    blocks: [
      { kind: 'heading', level: 2, text: ['A place'], id: 'place' },
      { kind: 'list', isOrdered: false, items: [targets.map((to) => ({ kind: 'text', text: [{ kind: 'link', text: ['x'], to }] }))] },
    ],
  })

it('finds pages and places that are not there, from blocks and from HTML', () => {
  const pages = [
    page(
      'index',
      { page: 'a/b' },
      { page: 'a/b', anchor: 'place' },
      { page: 'a/gone' },
      { page: 'a/b', anchor: 'gone' },
      { url: 'https://example.com' },
    ),
    page('a/b', { page: 'index', anchor: 'place' }, { page: 'a/b', anchor: 'nowhere' }),
  ]
  const byHand = new Map([
    ['play', '<a href="index.html#place" id="x"></a><a href="#x"></a><a href="#y"></a><script src="p.js"></script><img src="gone.png">'],
  ])
  expect(deadLinks(pages, byHand, new Map([['p.js', '']])).dead).toEqual([
    'index: a/gone.html',
    'index: a/b.html#gone',
    'a/b: #nowhere',
    'play: #y',
    'play: gone.png',
  ])
})

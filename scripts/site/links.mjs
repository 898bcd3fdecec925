// Dead links: every link of every page, and every place within a page that one leads to.
import { posix } from 'node:path'
import { addressOf } from '../../dist/docs/write/markdown.js'

/** What a page of HTML by hand has and leads to. */
const linksOfHtml = (html) => ({
  ids: [...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id),
  addresses: [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, address]) => address.replaceAll('&amp;', '&')),
})

/**
 * The links that lead nowhere, as `page: address`. `links`: what the pages of blocks have and lead to; `files`: the names of all files of the site; `byHand`: the HTML of pages that have no blocks; `made`: the places that the programs of
 * pages make, by page.
 */
export function deadLinks(links, byHand, files, made = new Map()) {
  const all = [
    ...links.map(({ path, ids, targets }) => ({ path, ids: new Set(ids), addresses: targets.map((target) => addressOf(path, target, '.html')) })),
    ...[...byHand].map(([path, html]) => {
      const { ids, addresses } = linksOfHtml(html)
      return { path, ids: new Set([...ids, ...(made.get(path) ?? [])]), addresses }
    }),
  ]
  const places = new Map(all.map(({ path, ids }) => [`${path}.html`, ids]))
  let count = 0
  const dead = all.flatMap(({ path, addresses }) =>
    addresses.flatMap((address) => {
      count++
      if (/^[a-z]+:/.test(address)) return []
      const [file, anchor] = address.split('#')
      const name = file === '' ? `${path}.html` : posix.join(posix.dirname(path), decodeURIComponent(file))
      const isThere = places.has(name) ? anchor === undefined || places.get(name).has(decodeURIComponent(anchor)) : files.has(name)
      return isThere ? [] : [`${path}: ${address}`]
    }),
  )
  return { count, dead: [...new Set(dead)] }
}

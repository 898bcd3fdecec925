// The Markdown files of the repository that are pages of the site, and where their links lead: to other pages, and to files of the repository, which get pages as well.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { readMarkdown } from './markdown.mjs'

/** Pages whose place is not that of their file below docs/. */
const PLACES = {
  'README.md': 'start',
  'docs/README.md': 'guides',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'SECURITY.md': 'reporting-vulnerabilities',
  'lint-rules/README.md': 'lint-rules',
  'examples/data/README.md': 'examples/data',
}

/** The Markdown files by their paths in the repository: the page of each. */
export function docFiles(root) {
  const markdown = (folder) =>
    readdirSync(`${root}${folder}`)
      .filter((name) => name.endsWith('.md'))
      .sort()
      .map((name) => `${folder}/${name}`)
  const usual = ['docs', 'docs/guide', 'docs/examples', 'docs/tutorials'].flatMap(markdown)
  return new Map([...usual, ...Object.keys(PLACES)].map((file) => [file, PLACES[file] ?? file.replace(/^docs\//, '').replace(/\.md$/, '')]))
}

/**
 * Where an address in a file of the repository leads. `pages`: pages by file, which grows by the files that links lead to; what is not there is a page that does not exist,
 * which the check of links reports.
 */
export function targetFrom(root, file, pages, asked) {
  return (address) => {
    if (/^[a-z]+:/.test(address)) return { url: address }
    const [path, fragment] = address.split('#')
    const anchor = fragment === undefined || fragment === '' ? {} : { anchor: decodeURIComponent(fragment) }
    if (path === '') return { page: pages.get(file), ...anchor }
    const wanted = posix.normalize(posix.join(posix.dirname(file), decodeURIComponent(path))).replace(/\/$/, '')
    const known = pages.get(wanted) ?? pages.get(`${wanted}/README.md`)
    if (known !== undefined) return { page: known, ...anchor }
    if (existsSync(root + wanted)) {
      asked.add(wanted)
      return { page: `files/${wanted}` }
    }
    return { page: `missing/${wanted}` }
  }
}

/** The page of a file that a link leads to: its text, or what is in a folder. */
export function filePage(root, path, asked) {
  const base = { path: `files/${path}`, title: path, crumbs: [{ text: 'contributing', page: 'contributing' }] }
  if (statSync(root + path).isDirectory()) {
    const items = readdirSync(root + path, { withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:m?[jt]s|md|txt|json|html)$/.test(entry.name))
      .map(({ name }) => name)
      .sort()
    for (const name of items) asked.add(`${path}/${name}`)
    const rows = items.map((name) => [
      { kind: 'text', text: [{ kind: 'link', text: [{ kind: 'code', text: name }], to: { page: `files/${path}/${name}` } }] },
    ])
    return { ...base, blocks: [{ kind: 'list', isOrdered: false, items: rows }] }
  }
  return {
    ...base,
    isSource: true,
    blocks: [{ kind: 'source', text: readFileSync(root + path, 'utf8').replace(/\n$/, ''), from: 1, hasAnchors: true }],
  }
}

/** The pages of Markdown files, with the file that each was made from. `pages`: where links to files of the repository lead. */
export function docPages(root, files, pages, asked) {
  return [...files].map(([file, path]) => {
    const { title, id, blocks } = readMarkdown(readFileSync(root + file, 'utf8'), targetFrom(root, file, pages, asked))
    const crumbs = path.includes('/') || file.startsWith('docs/') ? [{ text: 'guides', page: 'guides' }].filter(({ page }) => page !== path) : []
    return { file, page: { path, title, titleId: id, crumbs, blocks } }
  })
}

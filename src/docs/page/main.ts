// The program of pages of documentation: search, light or dark, buttons that copy. Pages can be read without it.
import { found } from './search.ts'
import type { Entry } from './search.ts'

declare global {
  interface Window {
    /** The index, which `search.js` of the site sets. */
    searchIndex?: readonly Entry[]
  }
}

const root = document.body.dataset['root'] ?? ''

function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const it = document.getElementById(id)
  if (!(it instanceof kind)) throw new Error(`the page has no element ${id}`)
  return it
}

const field = element('search', HTMLInputElement)
const results = element('results', HTMLSpanElement)
let selected = 0

function show(): void {
  const entries = found(window.searchIndex ?? [], field.value, 30)
  results.hidden = field.value.trim() === ''
  const nothing = document.createElement('p')
  nothing.textContent = 'Nothing has this name.'
  results.replaceChildren(
    ...(entries.length === 0 ? [nothing] : []),
    ...entries.map(([name, kind, address, summary], i) => {
      const link = document.createElement('a')
      link.href = root + address
      const small = document.createElement('small')
      small.textContent = `${kind}${summary === '' ? '' : ` · ${summary}`}`
      link.append(name, small)
      link.setAttribute('aria-selected', String(i === selected))
      return link
    }),
  )
}

field.hidden = false
field.addEventListener('input', () => {
  selected = 0
  show()
})
field.addEventListener('keydown', (event) => {
  const links = results.querySelectorAll('a')
  if (event.key === 'Enter') links[selected]?.click()
  else if (event.key === 'Escape') {
    field.value = ''
    show()
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    event.preventDefault()
    selected = Math.max(0, Math.min(links.length - 1, selected + (event.key === 'ArrowDown' ? 1 : -1)))
    show()
    results.querySelectorAll('a')[selected]?.scrollIntoView({ block: 'nearest' })
  }
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target instanceof HTMLInputElement) return
  event.preventDefault()
  field.focus()
})
document.addEventListener('click', (event) => {
  if (event.target instanceof Node && !results.contains(event.target) && event.target !== field) results.hidden = true
  else if (event.target instanceof Node && results.contains(event.target)) results.hidden = true
})

const colours = element('colours', HTMLButtonElement)
const chosen = ((): string | null => {
  try {
    return localStorage.getItem('docs-colours')
  } catch {
    return null
  }
})()
if (chosen !== null) document.documentElement.dataset['colours'] = chosen
colours.hidden = false
colours.addEventListener('click', () => {
  const isDark =
    getComputedStyle(document.documentElement).colorScheme === 'dark' ||
    (document.documentElement.dataset['colours'] === undefined && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset['colours'] = isDark ? 'light' : 'dark'
  try {
    localStorage.setItem('docs-colours', isDark ? 'light' : 'dark')
  } catch {
    // The choice is not kept where storage is off.
  }
})

// A diagram that is wider than the window begins at its first function.
for (const frame of document.querySelectorAll('.drawing')) {
  const first = frame.querySelector('a')?.getBoundingClientRect()
  const { left, width } = frame.getBoundingClientRect()
  if (first !== undefined) frame.scrollLeft += first.left + first.width / 2 - (left + width / 2)
}

for (const pre of document.querySelectorAll('pre:not(.source)')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  const text = pre.textContent
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(text).then(() => {
      button.textContent = 'Copied'
    })
  })
  pre.append(button)
}

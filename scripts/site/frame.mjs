// What all pages of the site share: its menu and its style.
import { readFileSync } from 'node:fs'
import { siteStyle } from '../../dist/docs/write/html.js'

export const frameOf = (name, generator) => ({
  name,
  generator,
  menu: [
    { text: 'Start', page: 'start' },
    { text: 'Playground', page: 'playground' },
    { text: 'Guides', page: 'guides' },
    { text: 'API', page: 'api/index' },
    { text: 'Operators', page: 'operators' },
    { text: 'Errors', page: 'errors' },
    { text: 'Changelog', page: 'changelog' },
  ],
})

export const style = () => `${siteStyle()}${readFileSync(new URL('site.css', import.meta.url), 'utf8')}`

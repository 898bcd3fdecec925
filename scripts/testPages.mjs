// npm run test:pages: drives the pages of graphs in headless Chromium, on a desktop and a phone, light and dark. Their pictures are in demo-report/pages. Where there is no
// Chromium, it says so and succeeds. Part of npm run test:browser.
import { fileURLToPath } from 'node:url'
import { launch } from './browser.mjs'
import { checkGraphPages } from './pages/graphPages.mjs'

const browser = await launch('test:pages')
let failures = 0
if (browser !== null) {
  try {
    failures = await checkGraphPages(browser, fileURLToPath(new URL('../demo-report/pages', import.meta.url)))
  } finally {
    await browser.close()
  }
  console.log(failures === 0 ? 'All pages are right.' : `${failures} checks failed.`)
}
process.exitCode = failures === 0 ? 0 : 1

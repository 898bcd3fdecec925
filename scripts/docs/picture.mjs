// npm run docs:picture: makes docs/graph.png, the picture in the README: the graph viewer in headless Chromium, with a network whose batch norm has been folded into the
// convolution before it.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fx, nn, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'
import { launch } from '../browser.mjs'

class Block extends nn.Module {
  conv = new nn.Conv2d(8, 8, 3, { padding: 1 })
  bn = new nn.BatchNorm2d(8)

  forward(x) {
    return torch.relu(this.bn(this.conv(x)).add(x))
  }
}

class Net extends nn.Module {
  stem = new nn.Conv2d(3, 8, 3, { padding: 1 })
  block = new Block()
  fc = new nn.Linear(8, 10)

  forward(x) {
    return this.fc(this.block(this.stem(x)).mean([2, 3]))
  }
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const before = fx.symbolicTrace(new Net().eval())
const after = fuse(before)
const image = torch.ones([1, 3, 32, 32])
for (const gm of [before, after]) new ShapeProp(gm).propagate(image)

const browser = await launch('docs:picture')
if (browser === null) process.exit(1)
try {
  const page = await browser.newPage({ viewport: { width: 1240, height: 780 }, colorScheme: 'light' })
  // The page shows the path of the traced file, which depends on the machine.
  await page.setContent(graphPage(after, { title: 'Folded', before }).replaceAll(root, ''))
  await page.locator('#search').fill('add')
  await page.locator('#search').press('Enter')
  await page.locator('#search').fill('')
  await page.locator('#search').blur()
  await page.keyboard.press('f')
  await page.waitForTimeout(500)
  writeFileSync(`${root}docs/graph.png`, await page.screenshot())
} finally {
  await browser.close()
}

// npm run docs:picture: makes docs/graph.png, the picture in the README: the graph viewer in headless Chromium, with a network whose batch norm has been folded into the
// convolution before it.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { fx, nn, torch } from 'tensorfx'
import { fuse } from 'tensorfx/fx/experimental'
import { ShapeProp } from 'tensorfx/fx/passes'
import { graphPage } from 'tensorfx/fx/viewer'

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

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 660 }, colorScheme: 'light' })
  // The page shows the path of the traced file, which depends on the machine.
  await page.setContent(graphPage(after, { title: 'Batch norm folded', before }).replaceAll(root, ''))
  await page.getByText('add', { exact: true }).first().click()
  await page.waitForTimeout(500)
  writeFileSync(`${root}docs/graph.png`, await page.screenshot())
} finally {
  await browser.close()
}

// Where the optional package sharp is not installed, Node decodes no images, and the error says what to install.
import { expect, it, vi } from 'vitest'
import { decodeImage } from 'tensorfx/vision'

vi.mock('sharp', () => {
  throw new Error("Cannot find package 'sharp'")
})

it('decodeImage asks for the package', async () => {
  const error: unknown = await decodeImage(new Uint8Array([1])).catch((thrown: unknown) => thrown)
  expect(String(error)).toContain(
    'UnsupportedError: decodeImage: Node decodes no images, and the optional package sharp could not be loaded. Install it: npm install sharp',
  )
})

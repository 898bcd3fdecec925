// PNG, JPEG and other files of images as tensors. The platform decodes them: the browser, and in Node the optional package sharp.
import { ArgumentError, UnsupportedError, messageOf } from '../errors/index.ts'
import { bytesOf } from '../interop/fileSource.ts'
import type { FileSource } from '../interop/fileSource.ts'
import { checkCount, checkOptions, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { channelsOf, checkMode, drawn } from './pixels.ts'
import type { ImageOptions, Pixels } from './pixels.ts'

/**
 * The image of a file, as bytes: its path (in Node), its URL, a Blob such as a File that was dropped onto a page, or its bytes. It is upright, as its EXIF data say, and its color profile is
 * ignored. Browsers decode what they can show; Node decodes by the package sharp, which a program installs. torchvision's `decode_image` and `read_image`.
 *
 * Shape: [C, H, W], `uint8`; `mode` says which channels.
 *
 * @throws UnsupportedError in Node without sharp.
 * @throws ArgumentError for a file that cannot be read, and for one that is not an image.
 * @example
 * const image = await decodeImage('cat.jpg') // [3, H, W]
 * const gray = await decodeImage(blob, { mode: 'GRAY' }) // [1, H, W]
 */
export async function decodeImage(source: FileSource, options: ImageOptions = {}): Promise<Tensor> {
  checkCount('decodeImage', arguments, 2)
  checkOptions('decodeImage', options, { mode: true })
  const { mode = 'RGB' } = options
  checkMode('decodeImage', mode)
  const bytes = await bytesOf('decodeImage', source)
  const named = typeof source === 'string' || source instanceof URL ? valueText(String(source)) : `a file of ${bytes.length} bytes`
  const decode = typeof createImageBitmap === 'undefined' ? bySharp : byBrowser
  return channelsOf(await decode(bytes, named), mode)
}

const notAnImage = (named: string, error: unknown): ArgumentError =>
  new ArgumentError(`decodeImage: ${named} cannot be decoded as an image: ${messageOf(error)}`, {
    cause: error,
  })

async function byBrowser(bytes: Uint8Array, named: string): Promise<Pixels> {
  const blob = new Blob([new Uint8Array(bytes)])
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' }).catch((error: unknown) => {
    throw notAnImage(named, error)
  })
  try {
    return drawn('decodeImage', bitmap)
  } finally {
    bitmap.close()
  }
}

type Sharp = (typeof import('sharp'))['default']

/** As a variable, so that bundlers of pages do not look for the package. */
const PACKAGE: string = 'sharp'

async function loadSharp(): Promise<Sharp> {
  try {
    const loaded: { readonly default: Sharp } = await import(/* @vite-ignore */ PACKAGE)
    return loaded.default
  } catch (error) {
    throw new UnsupportedError(
      `decodeImage: Node decodes no images, and the optional package sharp could not be loaded. Install it: npm install sharp (${messageOf(error)})`,
      { cause: error },
    )
  }
}

async function bySharp(bytes: Uint8Array, named: string): Promise<Pixels> {
  const sharp = await loadSharp()
  try {
    const image = sharp(bytes, { ignoreIcc: true }).autoOrient().toColourspace('srgb').ensureAlpha()
    const { data, info } = await image.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true })
    return { width: info.width, height: info.height, data }
  } catch (error) {
    throw notAnImage(named, error)
  }
}

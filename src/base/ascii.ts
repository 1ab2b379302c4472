/* ASCII characters as bytes, for code that searches text without decoding it. */

export const TAB = 0x09
export const LINE_FEED = 0x0a
export const VERTICAL_TAB = 0x0b
export const CARRIAGE_RETURN = 0x0d
export const SPACE = 0x20
export const QUOTE = 0x22
export const PLUS = 0x2b
export const COMMA = 0x2c
export const MINUS = 0x2d
export const DOT = 0x2e
export const ZERO = 0x30
export const NINE = 0x39
export const COLON = 0x3a
export const UPPER_E = 0x45
export const BRACKET_OPEN = 0x5b
export const BACKSLASH = 0x5c
export const BRACKET_CLOSE = 0x5d
export const LOWER_E = 0x65
export const LOWER_N = 0x6e
export const BRACE_OPEN = 0x7b
export const BRACE_CLOSE = 0x7d

/** The other side breaks the rules of HTTP/2: the connection ends. Codes: RFC 9113, section 7. */
export const PROTOCOL_ERROR = 1, FLOW_CONTROL_ERROR = 3, FRAME_SIZE_ERROR = 6, ENHANCE_YOUR_CALM = 11;

export class ProtocolError extends Error {
  constructor(text: string, readonly code = PROTOCOL_ERROR) {
    super(text);
  }
}
